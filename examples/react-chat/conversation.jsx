// The conversation: messages, the streaming message, questions, and the input field.

import { useEffect, useRef, useState } from "react";

export function Messages({ use, forkAt, forksAt, show }) {
  const end = useRef(null);
  const { messages, streaming, status } = use;
  useEffect(() => {
    end.current?.scrollIntoView({ block: "end" });
  });
  const isThinking = status === "running" && streaming.length === 0;
  return (
    <ol className="messages" data-testid="messages">
      {messages.length === 0 && status === "idle" && <li className="empty">Say something to begin.</li>}
      {messages.map((message) => (
        <Message key={message.id} message={message} fork={() => forkAt(message)} forks={forksAt(message)} show={show} />
      ))}
      {streaming.map(({ messageId, reasoning, text }) => (
        <li key={messageId} className="message assistant" data-testid="streaming">
          {reasoning && <p className="reasoning">{reasoning}</p>}
          <p>
            {text}
            <span className="caret" />
          </p>
        </li>
      ))}
      {isThinking && <li className="message assistant thinking">…</li>}
      <li ref={end} className="end" />
    </ol>
  );
}

function Message({ message, fork, forks, show }) {
  const { role, content, partial } = message;
  const parts = typeof content === "string" ? [{ type: "text", text: content }] : content;
  return (
    <li className={`message ${role}`} data-testid={role}>
      {parts.map((part, i) => (
        <Part key={keyOf(part, i)} part={part} />
      ))}
      {partial && <small className="partial">interrupted</small>}
      {forks.map(({ id, name = id }) => (
        <button key={id} type="button" className="way" onClick={() => show(id)}>
          ⑂ {name}
        </button>
      ))}
      {role !== "tool" && (
        <button type="button" className="fork" onClick={fork}>
          Fork from here
        </button>
      )}
    </li>
  );
}

/** The parts of a message never change places. */
const keyOf = ({ type, toolCallId }, i) => toolCallId ?? `${type} ${i}`;

function Part({ part }) {
  if (part.type === "text") return <p>{part.text}</p>;
  if (part.type === "reasoning") return <p className="reasoning">{part.text}</p>;
  if (part.type === "tool-call") {
    return (
      <p className="call">
        {part.toolName} <code>{JSON.stringify(part.input)}</code>
      </p>
    );
  }
  if (part.type === "tool-result") {
    const { value, reason } = part.output;
    const shown = value ?? reason ?? part.output.type;
    return <p className="call">→ {typeof shown === "string" ? shown : JSON.stringify(shown)}</p>;
  }
  return <p className="call">{part.type}</p>;
}

/** What this page's own tools answer needs nobody. */
export function Questions({ use, own }) {
  const open = use.interactions.filter(({ kind, request }) => kind !== "client-tool" || !own[request.toolName]);
  return open.map((question) => <Question key={question.id} question={question} />);
}

function Question({ question }) {
  const { kind, request } = question;
  if (kind === "clarification") return <Clarification question={question} />;
  if (kind === "client-tool") return <p className="question">Another page has to answer {request.toolName}.</p>;
  const isPermission = kind === "permission";
  return (
    <div className="question" role="alert">
      {isPermission ? (
        <p>
          Allow <b>{request.toolName}</b> <code>{JSON.stringify(request.input)}</code>?
        </p>
      ) : (
        <p>The limit of {request.limit} steps is reached. Go on?</p>
      )}
      <Until question={question} />
      <button type="button" className="primary" onClick={() => question.approve()}>
        Allow
      </button>
      {isPermission && (
        <button type="button" onClick={() => question.approve({ always: true })}>
          Always
        </button>
      )}
      <button type="button" onClick={() => question.deny({ reason: "The user said no." })}>
        Deny
      </button>
    </div>
  );
}

/** Most questions wait as long as it takes. */
function Until({ question: { expiresAt } }) {
  return expiresAt === undefined ? null : <p>It can be answered until {new Date(expiresAt).toLocaleString()}.</p>;
}

function Clarification({ question }) {
  const [text, setText] = useState("");
  const give = (event) => {
    event.preventDefault();
    question.answer({ answer: text });
  };
  return (
    <form className="question" onSubmit={give}>
      <p>{question.request.question}</p>
      <Until question={question} />
      <input aria-label="Answer" value={text} onChange={(event) => setText(event.target.value)} />
      <button type="submit" className="primary">
        Answer
      </button>
    </form>
  );
}

export function Composer({ use }) {
  const [text, setText] = useState("");
  const isBusy = use.status === "running" || use.status === "asking";
  const send = async (event) => {
    event.preventDefault();
    if (!text.trim()) return;
    setText("");
    // Keep the text if the server refused it.
    await use.submit(text).catch(() => setText(text));
  };
  const onKeyDown = (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing) send(event);
  };
  return (
    <form className="composer" onSubmit={send}>
      <textarea
        aria-label="Message"
        rows={1}
        placeholder="Message"
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={onKeyDown}
      />
      {use.status === "open" && (
        <button type="button" onClick={() => use.submit()}>
          Resume
        </button>
      )}
      {isBusy ? (
        <button type="button" onClick={() => use.stop("stopped in the page")}>
          Stop
        </button>
      ) : (
        <button type="submit" className="primary" disabled={!text.trim()}>
          Send
        </button>
      )}
    </form>
  );
}
