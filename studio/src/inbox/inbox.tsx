// The inbox: every question of every session, answered where it stands.

import { useMemo } from "react";
import { QuestionCard } from "../conversation/question.tsx";
import type { PendingInteraction } from "../data/bough.ts";
import { useClient } from "../data/session.tsx";
import { branchPlace, go } from "../place.ts";
import { type Session, titleOf, type Waiting } from "../sessions/sessions.ts";
import { Button } from "../ui/button.tsx";

interface InboxProps {
  readonly waiting: readonly Waiting[] | undefined;
  readonly sessions: readonly Session[];
  readonly defaultAgent: string | undefined;
  readonly onAnswered: () => Promise<void>;
}

export function Inbox({ waiting, sessions, defaultAgent, onAnswered }: InboxProps) {
  const titles = useMemo(() => new Map(sessions.map((session) => [session.id, titleOf(session)])), [sessions]);
  return (
    <main className="page" aria-label="Inbox">
      <h1>Inbox</h1>
      {waiting?.length === 0 && <p className="quiet">Nobody waits for you.</p>}
      {waiting?.map((question) => (
        <WaitingCard
          key={`${question.sessionId}/${question.branchId}/${question.id}`}
          question={question}
          title={titles.get(question.sessionId) ?? question.sessionId}
          agentId={question.agentId ?? defaultAgent ?? ""}
          onAnswered={onAnswered}
        />
      ))}
    </main>
  );
}

interface WaitingCardProps {
  readonly question: Waiting;
  readonly title: string;
  readonly agentId: string;
  readonly onAnswered: () => Promise<void>;
}

function WaitingCard({ question, title, agentId, onAnswered }: WaitingCardProps) {
  const client = useClient();
  const { sessionId, branchId } = question;
  const pending = useMemo((): PendingInteraction => {
    const handle = client.branch({ agentId, sessionId, branchId });
    const answer: PendingInteraction["answer"] = async (given) => {
      const answered = await handle.respond(question.id, given);
      await onAnswered();
      return answered;
    };
    return {
      ...question,
      answer,
      approve: ({ always } = {}) => answer({ approved: true, ...(always && { choice: "always" }) }),
      deny: ({ always, reason } = {}) =>
        answer({ approved: false, ...(always && { choice: "always" }), ...(reason !== undefined && { reason }) }),
    };
  }, [client, question, agentId, sessionId, branchId, onAnswered]);
  return (
    <div className="waiting">
      <div className="waiting-place">
        <b>{title}</b> <span className="quiet">{branchId}</span>
        <Button kind="plain" onClick={() => go(branchPlace(sessionId, branchId))}>
          Open
        </Button>
      </div>
      <QuestionCard question={pending} />
    </div>
  );
}
