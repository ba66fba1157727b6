// The table of commands. A new one is a file in commands/ and an entry here.

import type { Group } from "./command.ts";

const store: Group = {
  summary: "check, migrate and copy stores",
  commands: {
    check: {
      summary: "verify a store, clean up after crashes, list problems",
      load: async () => (await import("./commands/store-check.ts")).storeCheck,
    },
    migrate: {
      summary: "upgrade a store to the newest version; create it if necessary",
      load: async () => (await import("./commands/store-migrate.ts")).storeMigrate,
    },
    copy: {
      summary: "copy sessions from one store to another and verify the copy",
      load: async () => (await import("./commands/store-copy.ts")).storeCopy,
    },
  },
};

const sessions: Group = {
  summary: "list, show, export, import and delete sessions",
  commands: {
    ls: {
      summary: "list sessions, newest activity first",
      load: async () => (await import("./commands/sessions-ls.ts")).sessionsLs,
    },
    show: {
      summary: "show a session and its branch tree",
      load: async () => (await import("./commands/sessions-show.ts")).sessionsShow,
    },
    export: {
      summary: "write whole sessions as JSON lines",
      load: async () => (await import("./commands/sessions-export.ts")).sessionsExport,
    },
    import: {
      summary: "import an export and verify it",
      load: async () => (await import("./commands/sessions-import.ts")).sessionsImport,
    },
    permissions: {
      summary: 'list permissions answered with "always", or revoke them',
      load: async () => (await import("./commands/sessions-permissions.ts")).sessionsPermissions,
    },
    rm: {
      summary: "delete sessions with all their branches",
      load: async () => (await import("./commands/sessions-rm.ts")).sessionsRm,
    },
    prune: {
      summary: "delete sessions that have been inactive for some time",
      load: async () => (await import("./commands/sessions-prune.ts")).sessionsPrune,
    },
  },
};

const interactions: Group = {
  summary: "list and answer open questions",
  commands: {
    ls: {
      summary: "list open questions of all sessions",
      load: async () => (await import("./commands/interactions-ls.ts")).interactionsLs,
    },
    answer: {
      summary: "answer an open question",
      load: async () => (await import("./commands/interactions-answer.ts")).interactionsAnswer,
    },
  },
};

const tasks: Group = {
  summary: "list and cancel background tasks of a branch",
  commands: {
    ls: {
      summary: "list a branch's background tasks that have not ended",
      load: async () => (await import("./commands/tasks-ls.ts")).tasksLs,
    },
    cancel: {
      summary: "end a background task",
      load: async () => (await import("./commands/tasks-cancel.ts")).tasksCancel,
    },
  },
};

const compactions: Group = {
  summary: "list, make and take back compactions of a branch",
  commands: {
    ls: {
      summary: "list a branch's compactions, newest first",
      load: async () => (await import("./commands/compactions-ls.ts")).compactionsLs,
    },
    add: {
      summary: "leave a branch's old turns out of what models see, or of what people see too",
      load: async () => (await import("./commands/compactions-add.ts")).compactionsAdd,
    },
    rm: {
      summary: "take a compaction back: the newest, or the one named",
      load: async () => (await import("./commands/compactions-rm.ts")).compactionsRm,
    },
  },
};

const pins: Group = {
  summary: "list, add and remove messages of a branch that compactions keep",
  commands: {
    ls: {
      summary: "list a branch's pinned messages",
      load: async () => (await import("./commands/pins-ls.ts")).pinsLs,
    },
    add: {
      summary: "pin a message: later compactions keep it verbatim",
      load: async () => (await import("./commands/pins-add.ts")).pinsAdd,
    },
    rm: {
      summary: "remove a pin",
      load: async () => (await import("./commands/pins-rm.ts")).pinsRm,
    },
  },
};

const content: Group = {
  summary: "list, store, read and remove files of a branch",
  commands: {
    ls: {
      summary: "list the files that a branch sees",
      load: async () => (await import("./commands/content-ls.ts")).contentLs,
    },
    put: {
      summary: "store files on a branch",
      load: async () => (await import("./commands/content-put.ts")).contentPut,
    },
    get: {
      summary: "write a file of a branch to the disk, or to stdout",
      load: async () => (await import("./commands/content-get.ts")).contentGet,
    },
    rm: {
      summary: "remove files from a branch",
      load: async () => (await import("./commands/content-rm.ts")).contentRm,
    },
  },
};

const workflow: Group = {
  summary: "list, show, signal and draw executions of workflows",
  commands: {
    ls: {
      summary: "list executions and what they do",
      load: async () => (await import("./commands/workflow-ls.ts")).workflowLs,
    },
    show: {
      summary: "show the steps of an execution, and what it waits for",
      load: async () => (await import("./commands/workflow-show.ts")).workflowShow,
    },
    signal: {
      summary: "send a signal to an execution",
      load: async () => (await import("./commands/workflow-signal.ts")).workflowSignal,
    },
    draw: {
      summary: "print a graph, or an execution, as a Mermaid flowchart",
      load: async () => (await import("./commands/workflow-draw.ts")).workflowDraw,
    },
  },
};

const prompts: Group = {
  summary: "show what models were sent",
  commands: {
    show: {
      summary: "rebuild and verify the prompt of a reply, each part with its source",
      load: async () => (await import("./commands/prompts-show.ts")).promptsShow,
    },
    diff: {
      summary: "find where the prompts of two replies begin to differ, and why",
      load: async () => (await import("./commands/prompts-diff.ts")).promptsDiff,
    },
  },
};

const events: Group = {
  summary: "read logs",
  commands: {
    tail: {
      summary: "print the newest events of a branch; with --follow, also new ones",
      load: async () => (await import("./commands/events-tail.ts")).eventsTail,
    },
  },
};

export const root: Group = {
  summary: "durable sessions, branches and events for agents",
  commands: {
    serve: {
      summary: "serve agents and a store over HTTP; without a configuration, a demo agent",
      load: async () => (await import("./commands/serve.ts")).serve,
    },
    chat: {
      summary: "chat with an agent in the terminal, on a server or on a local store",
      load: async () => (await import("./commands/chat.ts")).chat,
    },
    store,
    sessions,
    interactions,
    tasks,
    compactions,
    pins,
    content,
    workflow,
    prompts,
    events,
    audit: {
      summary: "print who did what to a server's sessions, and with what outcome",
      load: async () => (await import("./commands/audit.ts")).audit,
    },
    doctor: {
      summary: "check this machine and a store, and suggest fixes",
      load: async () => (await import("./commands/doctor.ts")).doctor,
    },
  },
};
