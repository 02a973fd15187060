// The row types of all tables. Ids are text, instants are integer milliseconds since the epoch, booleans are 0 or 1.
import type { Generated } from 'kysely'
import type { DesiredState, JobOp, ObservedState } from '../../shared/api/boxes.ts'
import type { Command, CommandActor, CommandStream } from '../../shared/api/commands.ts'
import type { Region, Tier } from '../../shared/tiers.ts'

type Flag = 0 | 1

export type WorkspaceRow = {
  id: string
  name: string
  zero_data_retention: Flag
  created_at: number
}

export type UserRow = {
  id: string
  workspace_id: string
  email: string | null
  name: string
  role: 'owner' | 'member' | 'contractor'
  created_at: number
}

export type ApiKeyRow = {
  id: string
  workspace_id: string
  /** null for a key with no user. */
  user_id: string | null
  /** SHA-256 of the key, hex. The key itself is not stored. */
  hash: string
  kind: 'machine' | 'api'
  expires_at: number | null
  revoked_at: number | null
  /** JSON list of box ids for a key limited to boxes, else null. */
  box_ids: string | null
  /** JSON {area: level} for a limited key, else null. */
  access: string | null
  created_at: number
}

export type BoxRow = {
  id: string
  workspace_id: string
  owner_user_id: string
  hostname: string
  tier: Tier
  region: Region
  desired_region: Region | null
  desired_state: DesiredState
  observed_state: ObservedState
  /** When observed_state last changed. */
  state_since: number
  auto_pause_min: number | null
  pause_at: number | null
  auto_snapshot_hours: number | null
  auto_snapshot_keep: number
  quiet_hours_exempt: Flag
  restricted: Flag
  environment_id: string | null
  environment_version_no: number | null
  /** JSON list of {name, value}. */
  env_vars: string
  /** JSON Isolation; null until the box has a machine. */
  isolation: string | null
  /** SHA-256 of the token the box's agent presents, hex. null before provisioning and after deletion. */
  agent_token_hash: string | null
  /** The last applied report: all reports of `report_epoch` up to and including `report_seq` are applied. */
  report_epoch: string | null
  report_seq: number
  /** From the agent's last start; boot_id likewise. */
  agent_version: string | null
  boot_id: string | null
  pauses_survived: number
  /** JSON Vitals of the last stored heartbeat. */
  vitals: string | null
  last_heartbeat_at: number | null
  created_at: number
  updated_at: number
  terminated_at: number | null
}

export type BoxEventRow = {
  /** Ascending. The API shows it as evt_<seq>. */
  seq: Generated<number>
  box_id: string
  from_state: ObservedState | null
  to_state: ObservedState
  reason: string
  actor: string
  at: number
}

/** The lifecycle change in progress. A box has at most one. */
export type JobRow = {
  box_id: string
  op: JobOp
  step: string
  attempt: number
  last_error: string | null
  next_retry_at: number | null
  /** The coordinator that runs the job, and until when it owns it: the lease of a dead coordinator expires. */
  lease_owner: string | null
  lease_until: number | null
  /** Who requested the change: user:<id>, key:<id> or system. */
  actor: string
  /** The reason to show in the box's events; null for the operation's default reason. */
  reason: string | null
  /** Set for a delete. */
  operation_id: string | null
  created_at: number
}

export type OperationRow = {
  id: string
  workspace_id: string
  kind: 'box_delete' | 'snapshot_delete'
  target_id: string
  status: 'pending' | 'processing' | 'completed' | 'failed'
  requested_at: number
  completed_at: number | null
  error: string | null
}

export type IdempotencyKeyRow = {
  workspace_id: string
  /** Method and route pattern, e.g. `POST /boxes`. */
  route: string
  key: string
  /** SHA-256, hex, of the parts of a request that a replay must repeat (spec §4.1.6). */
  fingerprint: string
  /** The stored response; null while the first request is in progress. */
  status: number | null
  body: string | null
  created_at: number
}

/** A record of the command history. The box's first report creates it, from the claims token in the report. */
export type CommandRow = {
  id: string
  box_id: string
  mode: Command['mode']
  source: Command['source']
  /** null under zero data retention, and in a deleted record. */
  command: string | null
  command_truncated: Flag
  cwd: string | null
  status: Command['status']
  exit_code: number | null
  signal: string | null
  pid: number | null
  /** By the coordinator's clock. The history is sorted by it. */
  requested_at: number
  /** By the clock of the box, like finished_at. */
  started_at: number
  finished_at: number | null
  actor_kind: CommandActor['kind']
  actor_user_id: string | null
  actor_token_id: string | null
  output_kept: Flag
  /** The length of the stream, and the offset of the first stored byte: all bytes from there on are stored. */
  stdout_bytes: number
  stdout_start: number
  stderr_bytes: number
  stderr_start: number
  /** Set when the record is deleted. The row stays, so that later reports of the box do not recreate the record. */
  deleted_at: number | null
}

export type CommandOutputRow = {
  command_id: string
  stream: CommandStream
  start_offset: number
  size: number
  data: Uint8Array
}

/** A key for signing tokens, shared by all replicas. */
export type SigningKeyRow = {
  name: string
  /** 256 random bits, hex. */
  key: string
  created_at: number
}

export type AuditEventRow = {
  /** Ascending. */
  seq: Generated<number>
  workspace_id: string
  at: number
  kind: string
  origin: 'server' | 'client'
  actor_kind: CommandActor['kind']
  actor_user_id: string | null
  actor_token_id: string | null
  box_id: string | null
  /** JSON object. */
  detail: string
}

export type Tables = {
  workspaces: WorkspaceRow
  users: UserRow
  api_keys: ApiKeyRow
  boxes: BoxRow
  box_events: BoxEventRow
  jobs: JobRow
  operations: OperationRow
  idempotency_keys: IdempotencyKeyRow
  commands: CommandRow
  command_output: CommandOutputRow
  signing_keys: SigningKeyRow
  audit_events: AuditEventRow
}
