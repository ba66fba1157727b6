// The box at the bottom: says something, attaches files, and decides what a message does to a turn that is at work.

import { type ChangeEvent, type ClipboardEvent, type DragEvent, useEffect, useRef, useState } from "react";
import type { BranchUse } from "../data/bough.ts";
import { Button, IconButton } from "../ui/button.tsx";
import { bytes } from "../ui/time.ts";
import { useToaster } from "../ui/toast.tsx";
import { keepDraft, readDraft } from "./drafts.ts";
import { type Attached, useUploads } from "./uploads.ts";

type When = "queue" | "steer" | "interrupt";

const whens: Readonly<Record<When, string>> = {
  queue: "Queue: after this turn",
  steer: "Steer: into this turn",
  interrupt: "Interrupt: instead of this turn",
};

export function Composer({ use, onEditLast }: { use: BranchUse; onEditLast: () => void }) {
  const { sessionId, branchId } = use.handle.scope;
  const key = `${sessionId}/${branchId}`;
  const [text, setText] = useState(() => readDraft(key));
  const [when, setWhen] = useState<When>("queue");
  const [isOver, setOver] = useState(false);
  const { files, add, remove, clear } = useUploads(use.handle);
  const { attempt } = useToaster();
  const box = useRef<HTMLTextAreaElement>(null);
  const picker = useRef<HTMLInputElement>(null);
  useEffect(() => keepDraft(key, text), [key, text]);
  const isBusy = use.status === "running" || use.status === "asking";
  const ready = files.filter(({ uri }) => uri !== undefined);
  const isUploading = files.some(({ uri, failure }) => uri === undefined && failure === undefined);
  const canSend = (text.trim() !== "" || ready.length > 0) && !isUploading;

  const send = async () => {
    if (!canSend) return;
    const said = text;
    const parts = [
      ...ready.map(({ uri, mediaType, name }) => ({ type: "file" as const, mediaType, filename: name, data: uri! })),
      ...(said.trim() === "" ? [] : [{ type: "text" as const, text: said }]),
    ];
    setText("");
    const sent = await attempt(() =>
      use.submit(ready.length > 0 ? parts : said, { ifActive: isBusy ? when : "queue" }),
    );
    if (sent) clear();
    else setText((now) => (now === "" ? said : now));
  };
  const pick = (event: ChangeEvent<HTMLInputElement>) => {
    add(event.target.files ?? []);
    event.target.value = "";
  };
  const drop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    add(event.dataTransfer.files);
  };
  const paste = (event: ClipboardEvent) => {
    if (event.clipboardData.files.length === 0) return;
    event.preventDefault();
    add(event.clipboardData.files);
  };
  return (
    <form
      className={isOver ? "composer over" : "composer"}
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={drop}
    >
      <Queue use={use} />
      <AttachedFiles files={files} onRemove={remove} />
      <div className="composer-row">
        <IconButton icon="attach" label="Attach files" onClick={() => picker.current?.click()} />
        <input ref={picker} type="file" multiple hidden aria-label="Files" onChange={pick} />
        <textarea
          ref={box}
          aria-label="Message"
          rows={1}
          placeholder={isBusy ? "Say something; it waits its turn" : "Say something"}
          value={text}
          onChange={(event) => setText(event.target.value)}
          onPaste={paste}
          onKeyDown={(event) => {
            if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing) {
              event.preventDefault();
              void send();
            } else if (event.key === "ArrowUp" && text === "") {
              event.preventDefault();
              onEditLast();
            } else if (event.key === "Escape") box.current?.blur();
          }}
        />
        <TurnControls use={use} when={when} setWhen={setWhen} />
        <Button kind="solid" type="submit" disabled={!canSend}>
          Send
        </Button>
      </div>
    </form>
  );
}

function AttachedFiles({ files, onRemove }: { files: readonly Attached[]; onRemove: (key: number) => void }) {
  if (files.length === 0) return null;
  return (
    <ul className="attached" aria-label="Files of the next message">
      {files.map(({ key: id, name, size, sent, uri, failure }) => (
        <li key={id} className={failure === undefined ? undefined : "bad"}>
          <span>{name}</span>
          <span className="quiet">
            {failure ?? (uri ? bytes(size) : `${Math.floor((100 * sent) / Math.max(1, size))} %`)}
          </span>
          {uri === undefined && failure === undefined && (
            <progress value={sent} max={size} aria-label={`Upload of ${name}`} />
          )}
          <IconButton icon="close" label={`Remove ${name}`} onClick={() => onRemove(id)} />
        </li>
      ))}
    </ul>
  );
}

/** What can be done with a turn that is open. */
function TurnControls({ use, when, setWhen }: { use: BranchUse; when: When; setWhen: (when: When) => void }) {
  const { attempt } = useToaster();
  const isBusy = use.status === "running" || use.status === "asking";
  return (
    <>
      {isBusy && (
        <select
          aria-label="What a message does now"
          value={when}
          onChange={(event) => setWhen(event.target.value as When)}
        >
          {Object.entries(whens).map(([value, words]) => (
            <option key={value} value={value}>
              {words}
            </option>
          ))}
        </select>
      )}
      {use.status === "open" && (
        <Button onClick={() => void attempt(() => use.submit())} title="The turn was cut off; a run goes on with it">
          Go on
        </Button>
      )}
      {use.status === "running" && <Button onClick={() => void attempt(() => use.stop())}>Stop</Button>}
    </>
  );
}

/** Messages that wait their turn. */
function Queue({ use }: { use: BranchUse }) {
  const { attempt } = useToaster();
  if (use.queue.length === 0) return null;
  return (
    <ul className="queue" aria-label="Messages that wait">
      {use.queue.map(({ id, messages, when }) => (
        <li key={id}>
          <span className="quiet">{when === "steer" ? "joins this turn" : "next"}</span>
          <span className="one-line">{messages.map(({ content }) => wordsOf(content)).join(" ")}</span>
          <IconButton
            icon="close"
            label="Withdraw this message"
            onClick={() => void attempt(() => use.handle.withdrawInput(id))}
          />
        </li>
      ))}
    </ul>
  );
}

function wordsOf(content: string | readonly { readonly type: string }[]): string {
  if (typeof content === "string") return content;
  return content
    .map((part) => (part.type === "text" ? (part as unknown as { text: string }).text : `(${part.type})`))
    .join(" ");
}
