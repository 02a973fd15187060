// The groups of routes in the API reference, in its order: first those of the control plane, then those of the edge.

export const TAGS: readonly { name: string; description: string }[] = [
  { name: 'Sign-in', description: 'Codes by email, sign-in links, and the sessions of the dashboard.' },
  { name: 'Account', description: 'The user and the workspace of the credential, and what both may do.' },
  {
    name: 'API keys',
    description: 'The keys of programs. A key can be limited to boxes and areas, and expire.',
  },
  {
    name: 'Boxes',
    description:
      'Creating, changing and deleting boxes, with what belongs to one box: metrics, secrets, tickets, links.',
  },
  { name: 'Machines', description: 'Tokens with which other machines join as boxes.' },
  { name: 'Agents', description: 'The versions of the agents on boxes, and their upgrade.' },
  { name: 'Command history', description: 'The commands that boxes have run, with their output.' },
  {
    name: 'Snapshots',
    description: 'Copies of the disks of boxes. A named one is a template for new boxes.',
  },
  { name: 'Images', description: 'The regions, and the images from which their boxes start.' },
  { name: 'Environments', description: 'What new boxes start with: variables, files and repositories.' },
  { name: 'Secrets', description: 'Values that boxes use without reading them, and their grants.' },
  { name: 'Operations', description: 'The progress of changes that take longer than a request.' },
  {
    name: 'Feed',
    description: 'The lists of boxes, snapshots and operations, and their changes, in one WebSocket.',
  },
  { name: 'Members', description: 'The users of the workspace, their roles and their invitations.' },
  { name: 'Team', description: 'What the boxes and members of the workspace do now.' },
  { name: 'Billing', description: 'The balance of the workspace, its charges and its usage.' },
  { name: 'Workspace', description: 'The name, the policies and the end of a workspace.' },
  { name: 'Audit log', description: 'Who has done what, in a log with a hash chain, and its export.' },
  { name: 'Cloud roles', description: 'The AWS roles that boxes assume without stored keys.' },
  {
    name: 'Operator',
    description: 'For the operator of the coordinator: all workspaces, their credit, and keys.',
  },
  { name: 'Commands', description: 'Runs commands on a box, and follows their output.' },
  { name: 'Processes', description: 'All processes of a box, also those that no command has started.' },
  { name: 'Terminals', description: 'Terminal sessions of a box, which continue without a client.' },
  { name: 'Prompts', description: 'Runs coding agents on a box, with a queue, conversations and events.' },
  { name: 'Files', description: 'Reads, writes, lists and transfers files and directories of a box.' },
  { name: 'Ports', description: 'Connects to a TCP port of a box.' },
  { name: 'Desktop', description: 'The desktop of a box, with a browser, and its view.' },
]
