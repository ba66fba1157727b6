// The parts of a message: text, reasoning, files.

import { useEffect, useState } from "react";
import type { Message, Part } from "../data/bough.ts";
import { useClient } from "../data/session.tsx";
import { Markdown } from "../markdown/markdown.tsx";
import { Icon } from "../ui/icon.tsx";
import { useRowActions } from "./context.tsx";

export function Parts({ message }: { message: Message }) {
  const { content, role } = message;
  const parts: readonly Part[] = typeof content === "string" ? [{ type: "text", text: content }] : content;
  return parts.map((part, i) => <OnePart key={i} part={part} role={role} />);
}

function OnePart({ part, role }: { part: Part; role: Message["role"] }) {
  if (part.type === "text") {
    const { text } = part as { text: string };
    return role === "assistant" ? <Text text={text} /> : <div className="body said">{text}</div>;
  }
  if (part.type === "reasoning") return <Reasoning text={String((part as { text?: unknown }).text ?? "")} />;
  if (part.type === "file" || part.type === "reasoning-file") return <FilePart part={part} />;
  // Calls have cards of their own.
  if (part.type === "tool-call" || part.type === "tool-result") return null;
  return <p className="quiet">{`A part of the type ${part.type}`}</p>;
}

export function Text({ text, isGrowing = false }: { text: string; isGrowing?: boolean }) {
  return (
    <div className={isGrowing ? "body growing" : "body"}>
      <Markdown text={text} />
    </div>
  );
}

export function Reasoning({ text, isOpen = false }: { text: string; isOpen?: boolean }) {
  if (text === "") return null;
  return (
    <details className="reasoning" open={isOpen}>
      <summary>{isOpen ? "Thinking" : "Thought"}</summary>
      <div>{text}</div>
    </details>
  );
}

const contentScheme = "bough-content://sha256/";

interface FileData {
  readonly mediaType?: string;
  readonly filename?: string;
  readonly data?: { readonly type?: string; readonly url?: string };
}

function FilePart({ part }: { part: Part }) {
  const { mediaType = "", filename, data } = part as unknown as FileData;
  const url = data?.url ?? "";
  const contentId = url.startsWith(contentScheme) ? url.slice(contentScheme.length) : undefined;
  const name = filename ?? (contentId ? `${mediaType || "file"}` : url);
  if (contentId === undefined) return <span className="file">{`A file elsewhere: ${name}`}</span>;
  return <StoredFile contentId={contentId} mediaType={mediaType} name={name} />;
}

const drawn = /^image\/(png|jpeg|gif|webp|avif)$/;

/** A picture is fetched with the token and drawn from memory; everything else is a button that saves it. */
export function StoredFile({ contentId, mediaType, name }: { contentId: string; mediaType: string; name: string }) {
  const client = useClient();
  const { scope } = useRowActions();
  const [address, setAddress] = useState<string>();
  const [failure, setFailure] = useState<string>();
  const isPicture = drawn.test(mediaType);
  const { agentId, sessionId, branchId } = scope;
  useEffect(() => {
    if (!isPicture) return;
    let made: string | undefined;
    const stop = new AbortController();
    client
      .branch({ agentId, sessionId, branchId })
      .content.get(contentId, { signal: stop.signal })
      .then(
        (blob) => {
          made = URL.createObjectURL(new Blob([blob], { type: mediaType }));
          setAddress(made);
        },
        (error: Error) => stop.signal.aborted || setFailure(error.message),
      );
    return () => {
      stop.abort();
      if (made) URL.revokeObjectURL(made);
    };
  }, [client, agentId, sessionId, branchId, contentId, isPicture, mediaType]);
  const save = async () => {
    try {
      const blob = await client.branch(scope).content.get(contentId);
      const link = document.createElement("a");
      // What was stored by others is saved, never opened in this origin.
      link.href = URL.createObjectURL(new Blob([blob], { type: "application/octet-stream" }));
      link.download = name;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
    } catch (error) {
      setFailure((error as Error).message);
    }
  };
  return (
    <figure className="file">
      {address && <img src={address} alt={name} />}
      <button type="button" className="chip" onClick={() => void save()}>
        <Icon name="attach" />
        {name}
        <span className="quiet">{mediaType}</span>
      </button>
      {failure !== undefined && <figcaption className="failure">{failure}</figcaption>}
    </figure>
  );
}
