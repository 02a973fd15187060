// Which directory writes each table of the coordinator, and who else reads it. Relative to `coordinator/`.
import type { Tables } from '../../coordinator/db/schema.ts'

/**
 * The only directory that writes the table. A feature may declare a table of its own by `interface Tables` in its directory: then it
 * is the owner, and the table is not listed here.
 */
export const TABLE_OWNERS: Readonly<Partial<Record<keyof Tables, string>>> = {
  workspaces: 'identity/store',
  users: 'identity/store',
  api_keys: 'identity/store',
  sessions: 'identity/sessions',
  sign_in_codes: 'identity/sessions',
  tickets: 'identity/tickets',
  policies: 'identity/policies',
  audit_log: 'audit',
  audit_heads: 'audit',
  audit_sinks: 'audit/export',
  schedules: 'jobs',
  operations: 'jobs/operations',
  idempotency_keys: 'http',
  deletions: 'http',
  program_versions: 'db',
  agent_rollouts: 'agents/upgrades',
  commands: 'history/commands',
  command_output: 'history/commands',
  signing_keys: 'history/commands',
  metric_chunks: 'history/metrics',
  process_chunks: 'history/process-snapshots',
  boxes: 'boxes/store',
  box_events: 'boxes/store',
  box_moves: 'boxes/store',
  jobs: 'boxes/store',
  snapshots: 'boxes/store',
  snapshot_jobs: 'boxes/store',
  deleted_machines: 'boxes/store',
  image_downloads: 'images',
  enrollments: 'machines',
  last_prompts: 'team',
  port_shares: 'port-shares',
  share_viewers: 'port-shares/viewers',
  download_links: 'download-links',
  environments: 'environments/store',
  environment_versions: 'environments/store',
  environment_files: 'environments/store',
  box_repos: 'environments/delivery',
  secrets: 'secrets',
  secret_grants: 'secrets',
  secret_mounts: 'secrets',
  secret_uses: 'secrets',
  workspace_authorities: 'secrets',
  federation_keys: 'federation/issuer',
  aws_roles: 'federation/aws',
  aws_connects: 'federation/aws',
}

export type TableAccess = {
  /** A directory that does not own the tables. */
  dir: string
  tables: readonly (keyof Tables)[]
  reason: string
}

export const READERS: readonly TableAccess[] = [
  {
    dir: 'db',
    tables: ['boxes', 'workspaces', 'replicas'],
    reason:
      'locks the rows, checks the setting of zero data retention, that the database responds, and whether an owner is alive',
  },
  { dir: 'audit/export', tables: ['audit_log', 'audit_heads'], reason: 'delivers the log in its order' },
  {
    dir: 'identity/sessions',
    tables: ['users', 'api_keys'],
    reason: 'joins the user to each request with a session; codes of users and keys are deleted with them',
  },
  {
    dir: 'identity/tickets',
    tables: ['users', 'sessions'],
    reason: 'joins the user and the session to each request with a ticket',
  },
  {
    dir: 'port-shares',
    tables: ['boxes', 'policies'],
    reason: 'joins the box and the policies to each request to a shared port',
  },
  {
    dir: 'port-shares/viewers',
    tables: ['boxes'],
    reason: 'joins the owner of the box to each request of a viewer',
  },
  {
    dir: 'secrets',
    tables: ['boxes', 'users'],
    reason: 'joins the box and its owner to each request with a secret',
  },
  {
    dir: 'server/backup',
    tables: ['boxes', 'jobs', 'snapshots'],
    reason: 'lists what belongs to a backup',
  },
]

export const WRITERS: readonly TableAccess[] = [
  {
    dir: 'server/backup',
    tables: ['boxes', 'jobs', 'snapshots', 'snapshot_jobs'],
    reason: 'changes the copy of the database in a backup, which no coordinator uses',
  },
]

/** The tables of the objects that feeds send (coordinator/feed/). Functions that write them call recordRowChange(). */
export const NOTIFYING_TABLES: readonly (keyof Tables)[] = ['boxes', 'jobs', 'snapshots', 'operations']

/** The functions that write these tables and notify no feed. */
export const SILENT_WRITES: Readonly<Record<string, string>> = {
  'boxes/store/box-hosts.ts adoptBoxes': 'the host is in no object',
  'boxes/store/boxes.ts executeReportUpdate': 'the position in the reports of an agent is in no object',
  'boxes/store/boxes.ts storeFailure': 'a failed upgrade is in GET /agents only',
  'boxes/store/boxes.ts dismissFailures': 'a failed upgrade is in GET /agents only',
  'boxes/store/heartbeats.ts updateVitals': 'the lists of boxes have no vitals, which change all the time',
  'boxes/store/heartbeats.ts updatePorts': 'the lists of boxes have no ports',
  'boxes/store/snapshots.ts deleteSnapshotsDeletedBefore': 'deleted snapshots are in no list',
  'jobs/operations/store.ts deleteFinishedBefore': 'feeds have no operations that have finished',
}

/** Files in which the name of a table is a variable. */
export const GENERIC_STORES: Readonly<Record<string, string>> = {
  'jobs/lease-store.ts': 'the leases of jobs are the same columns of two tables',
  'server/master-keys/store.ts': 'encrypts the values of the columns that the modules name with another key',
  'retention/purge-store.ts': 'deletes the rows of a workspace from the tables that the modules name',
}
