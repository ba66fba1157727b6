// A question that waits for a person. It is a fact: it is there after a reload, after a restart, and on every screen at once.

import { useEffect, useState } from "react";
import type { PendingInteraction } from "../data/bough.ts";
import { Button } from "../ui/button.tsx";
import { ago, duration } from "../ui/time.ts";
import { useToaster } from "../ui/toast.tsx";

/** Keys answer a question only when it has been on the screen for so long: nobody answers what they have not seen. */
const seenMs = 400;

export function QuestionCard({ question, place }: { question: PendingInteraction; place?: string }) {
  const { attempt } = useToaster();
  const [isBusy, setBusy] = useState(false);
  const [shownAt] = useState(() => performance.now());
  const send = async (work: () => Promise<unknown>) => {
    setBusy(true);
    await attempt(work);
    setBusy(false);
  };
  const chain = chainOf(question);
  const press = (key: string) => {
    if (isBusy || performance.now() - shownAt < seenMs) return;
    if (question.kind !== "permission" && question.kind !== "continuation") return;
    if (key === "a") void send(() => question.approve());
    if (key === "d") void send(() => question.deny());
  };
  return (
    <section
      className="question"
      aria-label={`Question: ${titleOf(question)}`}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: with the focus on it, a and d answer
      tabIndex={0}
      onKeyDown={(event) => event.target === event.currentTarget && press(event.key)}
    >
      <h3>{titleOf(question)}</h3>
      {chain && <p className="quiet">{chain}</p>}
      {place !== undefined && <p className="quiet">{place}</p>}
      <Form question={question} isBusy={isBusy} send={send} />
      <footer>
        asked {ago(question.openedAt)} · kept in the log
        {question.expiresAt !== undefined && <Countdown until={question.expiresAt} />}
      </footer>
    </section>
  );
}

type Send = (work: () => Promise<unknown>) => Promise<void>;

function Form({ question, isBusy, send }: { question: PendingInteraction; isBusy: boolean; send: Send }) {
  if (question.kind === "permission") return <Permission question={question} isBusy={isBusy} send={send} />;
  if (question.kind === "continuation") {
    return (
      <div className="answers">
        <Button kind="solid" disabled={isBusy} onClick={() => void send(() => question.approve())}>
          Go on
        </Button>
        <Button disabled={isBusy} onClick={() => void send(() => question.deny())}>
          Stop here
        </Button>
      </div>
    );
  }
  if (question.kind === "clarification") return <Clarification question={question} isBusy={isBusy} send={send} />;
  return (
    <p className="quiet">The program that runs this agent’s client tools has to answer: {question.request.toolName}.</p>
  );
}

function Permission({
  question,
  isBusy,
  send,
}: {
  question: Extract<PendingInteraction, { kind: "permission" }>;
  isBusy: boolean;
  send: Send;
}) {
  const [reason, setReason] = useState<string>();
  const { request } = question;
  return (
    <>
      {request.description && <p>{request.description}</p>}
      {request.again && <p className="failure">This call was cut off and may have taken effect already.</p>}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls can be scrolled with keys */}
      <pre tabIndex={0}>{JSON.stringify(request.input, null, 2)}</pre>
      {reason === undefined ? (
        <div className="answers">
          <Button kind="solid" disabled={isBusy} onClick={() => void send(() => question.approve())}>
            Allow once
          </Button>
          <Button disabled={isBusy} onClick={() => void send(() => question.approve({ always: true }))}>
            Always in this session
          </Button>
          <Button disabled={isBusy} onClick={() => setReason("")}>
            Deny…
          </Button>
        </div>
      ) : (
        <form
          className="answers"
          onSubmit={(event) => {
            event.preventDefault();
            void send(() => question.deny(reason.trim() === "" ? {} : { reason: reason.trim() }));
          }}
        >
          <input
            aria-label="Reason"
            placeholder="Reason (the model reads it)"
            // biome-ignore lint/a11y/noAutofocus: a person asked for this box
            autoFocus
            value={reason}
            onChange={(event) => setReason(event.target.value)}
          />
          <Button kind="danger" type="submit" disabled={isBusy}>
            Deny
          </Button>
          <Button kind="plain" onClick={() => setReason(undefined)}>
            Back
          </Button>
        </form>
      )}
    </>
  );
}

function Clarification({
  question,
  isBusy,
  send,
}: {
  question: Extract<PendingInteraction, { kind: "clarification" }>;
  isBusy: boolean;
  send: Send;
}) {
  const [text, setText] = useState("");
  const { choices = [] } = question.request;
  return (
    <>
      {choices.length > 0 && (
        <div className="answers">
          {choices.map((choice) => (
            <Button key={choice} disabled={isBusy} onClick={() => void send(() => question.answer({ answer: choice }))}>
              {choice}
            </Button>
          ))}
        </div>
      )}
      <form
        className="answers"
        onSubmit={(event) => {
          event.preventDefault();
          if (text.trim() !== "") void send(() => question.answer({ answer: text.trim() }));
        }}
      >
        <input
          aria-label="Your answer"
          placeholder="In your own words"
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
        <Button kind="solid" type="submit" disabled={isBusy || text.trim() === ""}>
          Answer
        </Button>
      </form>
    </>
  );
}

function titleOf(question: PendingInteraction): string {
  if (question.kind === "permission") return `Allow ${question.request.toolName}?`;
  if (question.kind === "clarification") return question.request.question;
  if (question.kind === "continuation") return `It has made ${question.request.iteration} calls. Go on?`;
  return `Waits for ${question.request.toolName}`;
}

/** Which child asks, when it is not the agent itself. */
function chainOf({ request }: PendingInteraction): string | undefined {
  const { child } = request as { child?: { chain?: readonly string[]; agent?: string } };
  if (!child) return undefined;
  return `Asked by ${child.chain?.join(" › ") ?? child.agent ?? "a child"}`;
}

function Countdown({ until }: { until: number }) {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  return <span>{until > now ? ` · expires in ${duration(until - now)}` : " · has expired"}</span>;
}
