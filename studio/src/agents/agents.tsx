// The agents of the server: those of its program, and stored ones, which can be written here.

import { useCallback, useState } from "react";
import type { Client } from "../data/bough.ts";
import { usePolled } from "../data/polled.ts";
import { useClient } from "../data/session.tsx";
import { Button } from "../ui/button.tsx";
import { Ask } from "../ui/dialog.tsx";
import { ago } from "../ui/time.ts";
import { sentenceOf, useToaster } from "../ui/toast.tsx";

type Agent = Awaited<ReturnType<Client["listAgents"]>>[number];
type Config = NonNullable<Awaited<ReturnType<Client["getAgent"]>>["config"]>;

export function Agents() {
  const client = useClient();
  const ask = useCallback(() => client.listAgents(), [client]);
  const { value: agents, error, refresh } = usePolled(ask, 15_000);
  const { attempt, say } = useToaster();
  const [edited, edit] = useState<{ id?: string; config: string }>();
  const open = (id: string) =>
    attempt(async () => {
      const { config } = await client.getAgent(id);
      edit({ id, config: JSON.stringify(config ?? {}, null, 2) });
    });
  const remove = (id: string) =>
    attempt(async () => {
      await client.deleteAgent(id);
      say(`Deleted ${id}.`);
      await refresh();
    });
  return (
    <main className="page" aria-label="Agents">
      <h1>
        Agents <Button onClick={() => edit({ config: newConfig })}>New agent…</Button>
      </h1>
      {error !== undefined && <p className="failure">{sentenceOf(error)}</p>}
      <ul className="agents">
        {agents?.map((agent) => (
          <AgentRow
            key={agent.id}
            agent={agent}
            onEdit={() => void open(agent.id)}
            onDelete={() => void remove(agent.id)}
          />
        ))}
      </ul>
      {edited && <EditAgent agent={edited} onDone={refresh} onClose={() => edit(undefined)} />}
    </main>
  );
}

function AgentRow({ agent, onEdit, onDelete }: { agent: Agent; onEdit: () => void; onDelete: () => void }) {
  const { id, name, source, updatedAt } = agent;
  return (
    <li>
      <b>{name ?? id}</b>
      <span className="quiet">
        {name !== undefined && name !== id && `${id} · `}
        {source === "code"
          ? "from the server’s program"
          : `stored${updatedAt === undefined ? "" : `, ${ago(updatedAt)}`}`}
      </span>
      {source === "stored" && (
        <span className="agent-actions">
          <Button onClick={onEdit}>Edit</Button>
          <Button kind="danger" onClick={onDelete}>
            Delete
          </Button>
        </span>
      )}
    </li>
  );
}

const newConfig = JSON.stringify(
  { model: "anthropic/claude-sonnet-4-5", instructions: "You are a helpful agent." },
  null,
  2,
);

function EditAgent({
  agent,
  onDone,
  onClose,
}: {
  agent: { id?: string; config: string };
  onDone: () => Promise<void>;
  onClose: () => void;
}) {
  const client = useClient();
  const [error, setError] = useState<string>();
  const save = async (form: FormData) => {
    try {
      const config = JSON.parse(String(form.get("config"))) as Config;
      if (agent.id === undefined) {
        const agentId = String(form.get("id")).trim();
        await client.createAgent({ ...(agentId && { agentId }), config });
      } else await client.updateAgent(agent.id, { config });
      await onDone();
      onClose();
    } catch (failure) {
      setError(failure instanceof SyntaxError ? `This is not JSON: ${failure.message}` : sentenceOf(failure));
    }
  };
  return (
    <Ask
      title={agent.id === undefined ? "New agent" : `Agent ${agent.id}`}
      action="Save"
      error={error}
      onSubmit={(form) => void save(form)}
      onClose={onClose}
    >
      {agent.id === undefined && (
        <label>
          Id
          <input name="id" placeholder="one is made if this is empty" />
        </label>
      )}
      <label>
        Definition
        <textarea name="config" className="json-field" rows={12} defaultValue={agent.config} spellCheck={false} />
      </label>
    </Ask>
  );
}
