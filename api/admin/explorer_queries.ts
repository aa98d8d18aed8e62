/** What the explorer opens with, a tab each: what an administrator asks first. A test runs them. */
export const explorerQueries: readonly string[] = [
  `# What does not run, and why.
# Ctrl-Enter runs the query; each tab is another one worth running.
query Stuck {
  tasks(first: 20, filter: { status: { in: [blocked, failed] } }) {
    nodes {
      identifier
      title
      status
      causes { kind details }
      organization { slug }
      runs(first: 1) { nodes { status durationSeconds error } }
    }
  }
}
`,
  `# Every organization, with how much there is of what.
query Organizations {
  organizations(first: 20) {
    nodes {
      id
      slug
      name
      status
      workDispatchStoppedAt
      taskCounts { status count }
      runRequestCounts { kind ready held capacity }
    }
  }
}
`,
  `# What is being worked on, by whom it is held, and for how long.
query Running {
  runs(first: 20, filter: { status: { equalTo: running } }) {
    nodes {
      status
      startedAt
      durationSeconds
      model
      costMinorUnits
      organization { slug }
      runRequest { leaseRemainingSeconds task { identifier title } }
    }
  }
}
`,
  `# What waits for a person.
query Inbox {
  humanInboxItems(first: 20, filter: { status: { equalTo: open } }) {
    nodes {
      kind
      title
      createdAt
      organization { slug }
      task { identifier title }
    }
  }
}
`,
  `# Who decided what.
query Decisions {
  auditEntries(first: 20) {
    nodes {
      createdAt
      actorKind
      actor
      action
      outcome
      organization { slug }
    }
  }
}
`,
];

/** A tab that a person opens. */
export const emptyTab = `# Ctrl-Space completes, Ctrl-Enter runs. The schema is in the panel on the left.
`;
