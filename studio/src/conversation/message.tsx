// One message of the conversation, on the spine.

import { memo, useState } from "react";
import { textOf } from "../data/bough.ts";
import { Button, IconButton } from "../ui/button.tsx";
import { Icon } from "../ui/icon.tsx";
import { Menu } from "../ui/menu.tsx";
import { clockTime } from "../ui/time.ts";
import { useToaster } from "../ui/toast.tsx";
import { useRowActions } from "./context.tsx";
import { Parts, Reasoning, Text } from "./parts.tsx";
import type { CompactionRow, DraftRow, EndRow, MessageRow, Row } from "./rows.ts";
import { ToolCalls } from "./tool-card.tsx";

interface Where {
  readonly isFirst: boolean;
  readonly isLast: boolean;
  readonly isMarked: boolean;
  /** Its turn is the open one: a call without a result is at work. */
  readonly isOpenTurn: boolean;
}

export const RowView = memo(function RowView({ row, ...where }: { row: Row } & Where) {
  if (row.kind === "message") return <MessageView row={row} {...where} />;
  if (row.kind === "draft") return <DraftView row={row} {...where} />;
  if (row.kind === "tip") return <TipView />;
  return row.kind === "end" ? <EndView row={row} /> : <CompactionView row={row} />;
});

const sources: Readonly<Record<string, string>> = { steer: "while it worked", task: "from a background task" };

function MessageView({ row, isFirst, isLast, isMarked, isOpenTurn }: { row: MessageRow } & Where) {
  const { message, calls } = row;
  const { seqOf, agentName, isPinned, editing, startEdit, isPast } = useRowActions();
  const isEditing = editing === message.id && !isPast;
  const isUser = message.role === "user";
  const kind = [message.role, isFirst && "first", isLast && "last", isMarked && "marked", message.partial && "cut"];
  const seq = seqOf(message.id);
  return (
    <article className={["message", ...kind].filter(Boolean).join(" ")} aria-label={isUser ? "You" : agentName}>
      <span className="seq" title="Its position in the log">
        {seq}
      </span>
      <span className="node" aria-hidden="true" />
      <div className="inner">
        <header>
          <b>{isUser ? "You" : message.role === "system" ? "System" : agentName}</b>
          <time dateTime={new Date(message.createdAt).toISOString()}>{clockTime(message.createdAt)}</time>
          {message.source && <span className="quiet">{sources[message.source]}</span>}
          {isPinned(message.id) && <Icon name="pin" />}
          <VersionSwitch of={message.id} />
          <Actions row={row} onEdit={() => startEdit(message.id)} />
        </header>
        {isEditing ? <EditBox row={row} onClose={() => startEdit(undefined)} /> : <Parts message={message} />}
        <ToolCalls calls={calls} isOpenTurn={isOpenTurn} />
        {message.partial && <p className="quiet">It was cut off here.</p>}
      </div>
    </article>
  );
}

function Actions({ row, onEdit }: { row: MessageRow; onEdit: () => void }) {
  const actions = useRowActions();
  const { attempt, say } = useToaster();
  const { message } = row;
  const { id, role } = message;
  const copy = () =>
    attempt(async () => {
      await navigator.clipboard.writeText(textOf(message));
      say("Copied.");
    });
  const isUser = role === "user";
  const isPinned = actions.isPinned(id);
  return (
    <div className="actions">
      <IconButton icon="copy" label="Copy" onClick={() => void copy()} />
      {!actions.isPast && isUser && (
        <IconButton icon="edit" label="Edit: a new branch with other words" onClick={onEdit} />
      )}
      {!actions.isPast && !isUser && (
        <IconButton
          icon="again"
          label="Again: a new branch with another answer"
          onClick={() => void actions.again(id)}
        />
      )}
      {!actions.isPast && <IconButton icon="fork" label="Fork here" onClick={() => void actions.fork(id)} />}
      <Menu
        label="More"
        items={[
          ...(role === "assistant" ? [{ label: "What the model saw", onClick: () => actions.showPrompt(id) }] : []),
          { label: "Copy a link", onClick: () => actions.linkTo(id) },
          ...(actions.isPast
            ? []
            : [
                {
                  label: isPinned ? "Unpin" : "Pin: compactions keep it",
                  onClick: () => void actions.pin(id, !isPinned),
                },
              ]),
        ]}
      />
    </div>
  );
}

function EditBox({ row, onClose }: { row: MessageRow; onClose: () => void }) {
  const { edit } = useRowActions();
  const [text, setText] = useState(() => textOf(row.message));
  const send = async () => {
    if (text.trim() === "") return;
    onClose();
    await edit(row.message.id, text);
  };
  return (
    <form
      className="edit"
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      <textarea
        aria-label="Other words"
        // biome-ignore lint/a11y/noAutofocus: a person asked for this box
        autoFocus
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape") onClose();
          if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing) {
            event.preventDefault();
            void send();
          }
        }}
      />
      <div className="actions">
        <Button kind="plain" onClick={onClose}>
          Cancel
        </Button>
        <Button kind="solid" type="submit">
          Send on a new branch
        </Button>
      </div>
    </form>
  );
}

/** ‹2/3›: the other ways in which the conversation went on here. */
function VersionSwitch({ of: messageId }: { of: string | undefined }) {
  const { versionsAt, showVersion } = useRowActions();
  const versions = versionsAt(messageId);
  if (!versions || versions.branchIds.length < 2) return null;
  const { current, branchIds } = versions;
  const step = (by: number, label: string, sign: string) => {
    const to = branchIds[current + by];
    return (
      <button type="button" aria-label={label} disabled={to === undefined} onClick={() => showVersion(versions, by)}>
        {sign}
      </button>
    );
  };
  return (
    <span className="versions" title="Versions of this message">
      {step(-1, "Previous version", "‹")}
      <span className="number">
        {current + 1}/{branchIds.length}
      </span>
      {step(1, "Next version", "›")}
    </span>
  );
}

/** The end of a branch, where others go on. */
function TipView() {
  return (
    <div className="note tip">
      <span className="node" aria-hidden="true" />
      <p className="quiet">This branch ends here; others go on.</p>
      <VersionSwitch of={undefined} />
    </div>
  );
}

function DraftView({ row: { draft }, isLast }: { row: DraftRow } & Where) {
  const { agentName } = useRowActions();
  const names = draft.toolInputs.map(({ toolName }) => toolName).filter(Boolean);
  return (
    <article className={`message assistant draft${isLast ? " last" : ""}`} aria-label={agentName} aria-busy="true">
      <span className="node" aria-hidden="true" />
      <div className="inner">
        <header>
          <b>{agentName}</b>
        </header>
        <Reasoning text={draft.reasoning} isOpen={draft.text === ""} />
        <Text text={draft.text} isGrowing />
        {names.length > 0 && <p className="quiet">{`is asking for ${names.join(", ")} …`}</p>}
      </div>
    </article>
  );
}

function EndView({ row }: { row: EndRow }) {
  const { again, isPast } = useRowActions();
  return (
    <div className={`note ${row.status}`}>
      <span className="node" aria-hidden="true" />
      <p>{row.sentence}</p>
      {row.inputId !== undefined && !isPast && (
        <Button onClick={() => void again(row.inputId!)}>Try again on a new branch</Button>
      )}
    </div>
  );
}

function CompactionView({ row }: { row: CompactionRow }) {
  const { uncompact, isPast } = useRowActions();
  return (
    <div className="note compaction">
      <span className="node" aria-hidden="true" />
      <details>
        <summary>
          {row.isHard
            ? `${row.count} messages were replaced by this summary`
            : `Models see a summary of ${row.count} messages above`}
        </summary>
        <Text text={row.text} />
      </details>
      {!isPast && <Button onClick={() => void uncompact(row.id)}>Take it back</Button>}
    </div>
  );
}
