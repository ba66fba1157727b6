// About a branch: how full the context is, what its turns cost, its checkpoints, its compactions, its ids.

import { useCallback } from "react";
import type { BranchView, RemoteBranch } from "../data/bough.ts";
import { usePolled } from "../data/polled.ts";
import { Button } from "../ui/button.tsx";
import { Json } from "../ui/json.tsx";
import { ago, counted } from "../ui/time.ts";
import { useToaster } from "../ui/toast.tsx";

interface InfoPaneProps {
  readonly handle: RemoteBranch;
  readonly view: BranchView;
  readonly onGo: (seq: number) => void;
}

export function InfoPane({ handle, view, onGo }: InfoPaneProps) {
  return (
    <div className="info pad">
      <Context handle={handle} />
      <Usage view={view} />
      <Checkpoints handle={handle} onGo={onGo} />
      <h3>Names</h3>
      <dl>
        <dt>Session</dt>
        <dd>{handle.scope.sessionId}</dd>
        <dt>Branch</dt>
        <dd>{handle.scope.branchId}</dd>
        <dt>Agent</dt>
        <dd>{handle.scope.agentId}</dd>
      </dl>
      {Object.keys(view.header.metadata).length > 0 && <Json name="metadata" value={view.header.metadata} />}
      {Object.keys(view.state).length > 0 && <Json name="state" value={view.state} isOpen={false} />}
    </div>
  );
}

function Context({ handle }: { handle: RemoteBranch }) {
  const ask = useCallback(() => handle.contextUsage(), [handle]);
  const { value, refresh } = usePolled(ask, 15_000);
  const { attempt, say } = useToaster();
  if (!value) return null;
  const { tokens, window: size, share } = value;
  const compact = () =>
    attempt(async () => {
      const { messages, kept } = await handle.compact();
      say(`Models see a summary of ${counted(messages - kept, "message")} now.`);
      await refresh();
    });
  return (
    <section>
      <h3>Context</h3>
      {size !== undefined && share !== undefined && (
        <meter
          min={0}
          max={1}
          low={0.6}
          high={0.85}
          optimum={0}
          value={Math.min(1, share)}
          aria-label="Share of the context window"
        />
      )}
      <p>
        {tokens.toLocaleString()} tokens
        {size === undefined ? "" : ` of ${size.toLocaleString()} (${Math.round((share ?? 0) * 100)} %)`}
        {value.isEstimate && <span className="quiet"> · estimated</span>}
      </p>
      <Button onClick={() => void compact()}>Compact now</Button>
    </section>
  );
}

function Usage({ view }: { view: BranchView }) {
  const turns = view.turns.slice(-40).map(({ id, usage, from }) => ({
    id,
    from,
    tokens: Number((usage as { totalTokens?: number } | undefined)?.totalTokens ?? 0),
  }));
  const most = Math.max(1, ...turns.map(({ tokens }) => tokens));
  const total = Number((view.usage as { totalTokens?: number }).totalTokens ?? 0);
  if (turns.length === 0) return null;
  return (
    <section>
      <h3>Tokens by turn</h3>
      <svg
        className="bars"
        viewBox={`0 0 ${turns.length * 8} 40`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${total.toLocaleString()} tokens in ${counted(view.turns.length, "turn")}`}
      >
        {turns.map(({ id, tokens }, i) => (
          <rect key={id} x={i * 8 + 1} y={40 - (38 * tokens) / most} width={6} height={(38 * tokens) / most}>
            <title>{tokens.toLocaleString()}</title>
          </rect>
        ))}
      </svg>
      <p className="quiet">{total.toLocaleString()} tokens in all</p>
    </section>
  );
}

function Checkpoints({ handle, onGo }: { handle: RemoteBranch; onGo: (seq: number) => void }) {
  const ask = useCallback(() => handle.checkpoints.list(), [handle]);
  const { value = [], refresh } = usePolled(ask, 15_000);
  const { attempt } = useToaster();
  const save = (form: FormData) =>
    attempt(async () => {
      const label = String(form.get("label")).trim();
      await handle.checkpoints.save(label ? { label } : {});
      await refresh();
    });
  return (
    <section>
      <h3>Checkpoints</h3>
      <form
        className="inline"
        onSubmit={(event) => {
          event.preventDefault();
          void save(new FormData(event.currentTarget));
          event.currentTarget.reset();
        }}
      >
        <input name="label" aria-label="Name of the checkpoint" placeholder="Name this moment" />
        <Button type="submit">Save</Button>
      </form>
      <ul>
        {value.slice(0, 50).map(({ id, label, seq, createdAt, source }) => (
          <li key={id}>
            <button type="button" className="plain" onClick={() => onGo(seq)}>
              {label ?? source}{" "}
              <span className="quiet">
                at {seq} · {ago(createdAt)}
              </span>
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}
