// The row types of all tables. Ids are text, instants are integer milliseconds since the epoch, booleans are 0 or 1.
import type { Generated } from 'kysely'
import type { Role } from '../../shared/api/account.ts'
import type { AuditActorKind } from '../../shared/api/audit.ts'
import type { BoxKind, DesiredState, JobOp, ObservedState, SuspendedAs } from '../../shared/api/boxes.ts'
import type { Command, CommandActor, CommandStream } from '../../shared/api/commands.ts'
import type { BoxRepo } from '../../shared/api/environments.ts'
import type { PortAudience } from '../../shared/api/port-shares.ts'
import type { SecretScope } from '../../shared/api/secrets.ts'
import type { Snapshot } from '../../shared/api/snapshots.ts'
import type { SealedAuditEvent } from '../../shared/audit-chain.ts'
import type { Region, Tier } from '../../shared/tiers.ts'

type Flag = 0 | 1

export type WorkspaceRow = {
  id: string
  name: string
  zero_data_retention: Flag
  created_at: number
  /** When its closing was requested; null: it is open. */
  closing_at: number | null
  /** When everything of a closing workspace is removed. */
  purge_after: number | null
}

/** A member of one workspace. A person with several workspaces has a user in each, with the same email address. */
export type UserRow = {
  id: string
  workspace_id: string
  /** Lowercase. Unique among the members of the workspace. */
  email: string | null
  name: string
  role: Role
  created_at: number
  /** When the user signed in for the first time; null: the invitation is open. */
  joined_at: number | null
  /** The row stays: boxes and events refer to it. */
  removed_at: number | null
  /** The last use of a session, up to an hour late. */
  last_active_at?: number | null | undefined
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
  name: string
  /** The last characters of the key, by which its user recognises it. null: unknown. */
  ending: string | null
  /** The last use of the current secret, up to a minute late. */
  last_used_at: number | null
  /** Set until the emailed code of a new agent account is confirmed (spec §5.3). */
  unverified_since: number | null
}

export type SessionRow = {
  id: string
  /** SHA-256 of the cookie's value, hex. */
  hash: string
  workspace_id: string
  user_id: string
  user_agent: string | null
  /** The IP address of the sign-in. */
  address: string | null
  created_at: number
  /** The last use, up to an hour late. */
  last_used_at: number
  /** Each use moves the expiry. */
  expires_at: number
}

export type SignInCodeRow = {
  id: string
  email: string
  /** The key that the code verifies. */
  key_id: string | null
  /** The user whose new email address the code confirms. A code without a key and a user signs in. */
  user_id: string | null
  /** SHA-256, hex. */
  code_hash: string
  /** Failed attempts. */
  attempts: number
  created_at: number
  expires_at: number
  used_at: number | null
}

/** A credential for one box, which a dashboard session has created. */
export type TicketRow = {
  id: string
  /** SHA-256, hex. */
  hash: string
  workspace_id: string
  user_id: string
  session_id: string
  box_id: string
  created_at: number
  expires_at: number
}

/** A token that enrolls one machine as a box. */
export type EnrollmentRow = {
  id: string
  workspace_id: string
  /** SHA-256 of the token, hex. */
  hash: string
  /** Who created the token; null: a key with no user. */
  user_id: string | null
  /** The API key or session that created the token. */
  credential_id: string
  credential_kind: 'machine' | 'api' | 'session'
  /** null: the name is chosen when the token is used. */
  name: string | null
  region: Region
  restricted: Flag
  /** Has the form of BoxRow.env_vars. */
  env_vars: string
  created_at: number
  expires_at: number
  revoked_at: number | null
  /** used_at, agent_token_hash and box_id are set when the token has been used. */
  used_at: number | null
  /** The identity of the agent that used it: the same agent may repeat the request. */
  agent_token_hash: string | null
  box_id: string | null
}

/** A machine whose box has been deleted, and whose agent uninstalls itself when it connects. */
export type DeletedMachineRow = { box_id: string; agent_token_hash: string; deleted_at: number }

export type PolicyRow = {
  workspace_id: string
  /** JSON Policy. */
  policy: string
  updated_by: string | null
  updated_at: number
}

/** Which agents of a workspace get new builds. No row: all of them. */
export type AgentRolloutRow = {
  workspace_id: string
  /** Percent. */
  share: number
  paused: Flag
  updated_by: string | null
  updated_at: number
}

export type BoxRow = {
  id: string
  kind: BoxKind
  workspace_id: string
  owner_user_id: string
  hostname: string
  tier: Tier
  region: Region
  /** The name of the provider that has the machine (Provider.name). */
  provider: string
  /** The host whose data directory has the files (DataDirectory.host). null: an enrolled machine, or no coordinator has started since the migration. */
  host: string | null
  /** The image as it was requested; null: the provider has no images. */
  image: string | null
  /** The content of the image; null: not known yet. */
  image_digest: string | null
  desired_region: Region | null
  desired_state: DesiredState
  observed_state: ObservedState
  /** When observed_state last changed. */
  state_since: number
  auto_pause_min: number | null
  pause_at: number | null
  delete_at: number | null
  /** The minutes from the request that set delete_at. */
  delete_after_min: number | null
  auto_snapshot_hours: number | null
  auto_snapshot_keep: number
  quiet_hours_exempt: Flag
  restricted: Flag
  environment_id: string | null
  environment_version_no: number | null
  /** JSON list of {name, value}: the variables of the box itself. */
  env_vars: string
  /** JSON {key: value}, sorted by key. */
  labels: string
  /** In the form of env_vars: the variables of the environment version, and the placeholders of the mounted secrets. */
  environment_vars: string
  mount_vars: string
  /** The environment version whose files the box has; null: none. */
  applied_version_no: number | null
  /** JSON list of paths: secret files that the box has from its source or an earlier version, for removal with the next delivery. */
  stale_files: string
  /** What the last suspend did; null when the box has been woken, and while its machine is removed or does not exist. */
  suspended_as: SuspendedAs | null
  /** The archive of a box in deep sleep, or of a move in progress. */
  archive_id: string | null
  /** The disk space that the files of the last archive need in a machine. */
  archive_bytes: number | null
  /** JSON list of Leftover: machines and archives that must be removed. null: none. */
  leftovers: string | null
  /** The snapshot whose files the box gets when it is created; null: none, or the box has them. */
  source_snapshot_id: string | null
  /** JSON Isolation; null until the box has a machine. */
  isolation: string | null
  /** SHA-256 of the token the box's agent presents, hex. null before provisioning and after deletion. */
  agent_token_hash: string | null
  /** The newest lineage id with which the agent of a machine has connected (coordinator/machines/machine-agents.ts). */
  agent_lineage: string | null
  /** The last applied report: all reports of `report_epoch` up to and including `report_seq` are applied. */
  report_epoch: string | null
  report_seq: number
  /** agent_version and boot_id are those of the agent's last start. */
  agent_version: string | null
  boot_id: string | null
  /** The last failed upgrade that the agent reported, as `<build>@<time>`. null: none. */
  agent_failure: string | null
  /** Whether the failed build may be offered again. */
  agent_failure_dismissed: Flag
  pauses_survived: number
  /** JSON Vitals of the last stored heartbeat. */
  vitals: string | null
  last_heartbeat_at: number | null
  /** JSON ListeningPort list of the last report; null until the first one. */
  listening_ports: string | null
  /** JSON Machine; null until the agent has reported it. */
  machine: string | null
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
  /** An error code of the API: why the box could not be created. */
  error_code: Generated<string | null>
  actor: string
  at: number
}

/** The coordinator that works on the row, while it is alive (replicas/). Set only where several use the database. */
type Leased = { lease_owner: Generated<string | null> }

/** The lifecycle change in progress. A box has at most one. */
export type JobRow = {
  box_id: string
  op: JobOp
  step: string
  attempt: number
  last_error: string | null
  next_retry_at: number | null
  /** The coordinator that runs the job. It counts only while that coordinator is alive (replicas/store.ts). */
  lease_owner: string | null
  /** Who requested the change: user:<id>, key:<id> or system. */
  actor: string
  /** The reason to show in the box's events; null for the operation's default reason. */
  reason: string | null
  /** Set for a delete. */
  operation_id: string | null
  /** JSON of what the operation needs besides the box; null: nothing. */
  params: string | null
  created_at: number
}

export type SnapshotRow = {
  id: string
  workspace_id: string
  /** The owner of the box. */
  owner_user_id: string
  name: string
  description: string | null
  status: Snapshot['status']
  kind: Snapshot['kind']
  /** The copy that a fork makes for itself. */
  transient: Flag
  template_name: string | null
  expires_at: number | null
  box_id: string
  source_hostname: string
  tier: Tier
  region: Region
  /** The provider, the host and the image of the box. */
  provider: string
  host: string | null
  image: string | null
  image_digest: string | null
  restricted: Flag
  /** The variables of the box, in the form of BoxRow.env_vars. */
  env_vars: string
  /** The labels of the box, in the form of BoxRow.labels. */
  labels: string
  /** The environment version of the box. */
  environment_id: string | null
  environment_version_no: number | null
  /** JSON list of CarriedMount (boxes/box-hooks.ts): the mounts of the box. */
  mounts: string
  /** The disk space that the files need in a box; null until the snapshot is available. */
  content_bytes: number | null
  /** What the snapshot added to the archive store. */
  stored_bytes: number | null
  /** How long the processes of the box were paused; null: the box was not running. */
  paused_ms: number | null
  error: string | null
  created_at: number
  updated_at: number
  /** When a requested deletion completed. The row stays as long as the operation, so that a repeated request gets it. */
  deleted_at: number | null
}

/** The change of a snapshot in progress. A snapshot has at most one. */
export type SnapshotJobRow = Pick<
  JobRow,
  'attempt' | 'last_error' | 'next_retry_at' | 'lease_owner' | 'actor' | 'operation_id' | 'created_at'
> & { snapshot_id: string; op: 'create' | 'delete' }

/**
 * When the condition of a schedule is evaluated next. A row may be due too early: the evaluation then moves it. The
 * evaluation and the change that it makes commit together, so a schedule never runs twice.
 */
export type ScheduleRow = {
  /** Names the handler: see Module.schedules. */
  kind: string
  /** A box, a snapshot or a workspace; for `prune` the name of what is pruned. */
  target_id: string
  due_at: number
}

/** A move of a box to another region, for the limits per day. */
export type BoxMoveRow = { box_id: string; workspace_id: string; at: number }

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
  /** The coordinator that runs the request, until there is a response; null: a version that stored none has written the row. */
  lease_owner: string | null
  created_at: number
}

/** A resource that a DELETE has removed, for repeated requests (spec §4.1.5). */
export type DeletionRow = {
  workspace_id: string
  /** The id in the path, with further parts where it is not unique in the workspace. */
  resource_id: string
  deleted_at: number
}

/** A version of Boxwood that has used the database, and its last start. */
export type ProgramVersionRow = {
  version: string
  started_at: number
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
  /** The time on the coordinator's clock. The history is sorted by it. */
  requested_at: number
  /** started_at and finished_at are times on the clock of the box. */
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

/** The metrics of one box in one period: an hour of samples, or several days of rollups. */
export type MetricChunkRow = {
  box_id: string
  /** Seconds per bucket: 30 for samples, 300 and 3600 for rollups. */
  res: number
  /** Epoch seconds, a multiple of the period of `res`. */
  start: number
  /** 1: samples that the rollups do not contain yet. */
  pending_rollup: Flag
  /** Compressed columns, see history/metrics/chunk.ts. */
  data: Uint8Array
}

/** The process snapshots of one box in four hours. */
export type ProcessChunkRow = {
  box_id: string
  /** Epoch seconds, a multiple of four hours. */
  start: number
  /** Compressed snapshots, see history/process-snapshots/chunk.ts. */
  data: Uint8Array
}

/** A key for signing tokens, shared by all replicas. */
export type SigningKeyRow = {
  name: string
  /** 256 random bits, hex. */
  key: string
  created_at: number
}

export type AuditEventRow = SealedAuditEvent & { origin: 'server' | 'client'; actor_kind: AuditActorKind }

/** The newest event of a workspace, which the next event's hash covers. Writers lock the row. */
export type AuditHeadRow = {
  workspace_id: string
  no: number
  hash: string
  /** The times of events do not decrease. */
  at: number
  /** The events up to this one are deleted (policy auditRetentionDays); 0: none. */
  pruned_no: number
  pruned_hash: string
}

/** The HTTPS endpoint that receives the audit events of a workspace. */
export type AuditSinkRow = {
  workspace_id: string
  url: string
  /** Signs the deliveries. */
  secret: string
  /** The events up to this one are delivered. */
  delivered_no: number
  /** Failed attempts since the last delivery. */
  attempt: number
  next_attempt_at: number | null
  last_error: string | null
  last_delivered_at: number | null
  updated_by: string | null
  updated_at: number
}

/** When the box last accepted a prompt. */
export type LastPromptRow = { box_id: string; workspace_id: string; at: number }

export type PortShareRow = {
  id: string
  workspace_id: string
  box_id: string
  port: number
  slug: string
  access: PortAudience
  /** SHA-256 (hex) of the secret of an anyone link; null for other audiences. */
  secret_hash: string | null
  rewrites_host: 0 | 1
  /** user:<id> or key:<id>. */
  created_by: string
  created_at: number
  /** null for members links. */
  expires_at: number | null
  /** When the share was revoked, replaced or had expired, or its box was deleted. An expired link may not have it yet. */
  ended_at: number | null
  open_count: number
  last_opened_at: number | null
}

/** A link that downloads a file of a box once. */
export type DownloadLinkRow = {
  /** SHA-256 (hex) of the token. */
  hash: string
  workspace_id: string
  box_id: string
  /** The key or session that has created the link. */
  credential_id: string
  path: string
  expires_at: number
}

/** A person, or a program with a browser, at a share for members: a code, then a session. */
export type ShareViewerRow = {
  id: string
  workspace_id: string
  box_id: string
  share_id: string
  /** The credential that has created the code. */
  credential_type: 'key' | 'session'
  credential_id: string
  /** null: the credential is a key without a user. */
  user_id: string | null
  /** SHA-256 (hex). null: the code was used. */
  code_hash: string | null
  /** SHA-256 (hex) of the value of the cookie. null: the code was not used. */
  token_hash: string | null
  created_at: number
  /** Of the code, until it is used. */
  expires_at: number
}

export type EnvironmentRow = {
  id: string
  workspace_id: string
  name: string
  description: string | null
  is_default: Flag
  latest_version_no: number
  created_at: number
  updated_at: number
  /** A deleted environment stays as long as a box or a snapshot uses one of its versions. */
  deleted_at: number | null
}

export type EnvironmentVersionRow = {
  environment_id: string
  version_no: number
  workspace_id: string
  /** JSON EnvironmentConfig (environments/config.ts). Files are ids of EnvironmentFileRow. */
  config: string
  /** user:<id> or key:<id>. */
  created_by: string
  created_at: number
}

/** The content of a secret file. Versions that have the file unchanged share the row. */
export type EnvironmentFileRow = {
  id: string
  workspace_id: string
  environment_id: string
  /** Bytes. */
  size: number
  /** Sealed (base/sealing/): base64 of the content. key_id is the id of the master key. */
  content: string
  key_id: string
  created_at: number
}

/** A repository that is cloned on a box. */
export type BoxRepoRow = {
  box_id: string
  workspace_id: string
  /** As the environment names it. */
  repo: string
  path: string
  ref: string | null
  /** The name of the secret with which git authenticates; null: none. */
  secret: string | null
  state: BoxRepo['state']
  commit_id: string | null
  error: string | null
  updated_at: number
}

export type SecretRow = {
  id: string
  workspace_id: string
  name: string
  description: string | null
  /** JSON list of host patterns, in lowercase. */
  hosts: string
  /** JSON array of SecretLocation. */
  locations: string
  placeholder: string
  /** Sealed (base/sealing/). key_id is the id of the master key. */
  value: string
  key_id: string
  /** granted: only the boxes that a grant covers may use it, which are none without grants. */
  scope: SecretScope
  /** user:<id> or key:<id>. */
  created_by: string
  created_at: number
  updated_at: number
  last_rotated_at: number | null
}

/** Either box_id and hostname are set, or user_id and email. */
export type SecretGrantRow = {
  id: string
  workspace_id: string
  secret_id: string
  box_id: string | null
  hostname: string | null
  user_id: string | null
  email: string | null
  created_by: string
  created_at: number
}

/** A secret on a box. Exists only as long as the grants of the secret allow it and the box is not restricted. */
export type SecretMountRow = {
  id: string
  workspace_id: string
  secret_id: string
  box_id: string
  env_name: string
  created_by: string
  created_at: number
}

export type SecretUseRow = {
  secret_id: string
  workspace_id: string
  box_id: string
  host: string
  first_at: number
  last_at: number
  count: number
}

/** The certificate authority whose leaf certificates the boxes of a workspace trust for brokered hosts. */
export type WorkspaceAuthorityRow = {
  workspace_id: string
  /** PEM. */
  certificate: string
  /** Sealed PEM. */
  private_key: string
  key_id: string
  created_at: number
}

/** A signing key of the identity issuer. Its id is the key id (kid) of tokens. */
export type FederationKeyRow = {
  id: string
  /** next: published and not used yet. active: signs. retired: verifies tokens that it has signed. */
  state: 'next' | 'active' | 'retired'
  /** JSON. */
  public_jwk: string
  /** Sealed PKCS #8 PEM. */
  private_key: string
  key_id: string
  created_at: number
  activated_at: number | null
  retired_at: number | null
}

/** An AWS role of a workspace. */
export type AwsRoleRow = {
  id: string
  workspace_id: string
  role_arn: string
  /** Unique in the workspace. */
  profile: string
  /** The last verification has succeeded; null: it has failed, or there was none. */
  verified_at: number | null
  verified_arn: string | null
  verify_error: string | null
  created_by: string
  created_at: number
}

/** A link that connects a role. A workspace has at most one. */
export type AwsConnectRow = {
  id: string
  workspace_id: string
  token_hash: string
  profile: string | null
  /** The creator, who must still be an owner when the link is used. */
  user_id: string
  credential_type: 'key' | 'session'
  credential_id: string
  created_at: number
  expires_at: number
}

/** An image that the coordinator has downloaded. The engine may have further ones. */
export type ImageDownloadRow = {
  region: Region
  /** See getFullName(). */
  image: string
  size_bytes: number
  /** When a box, a snapshot or an environment was last seen to use it, within an hour, or the download. */
  used_at: number
}

export interface Tables {
  workspaces: WorkspaceRow
  users: UserRow
  api_keys: ApiKeyRow
  boxes: BoxRow
  box_events: BoxEventRow
  jobs: JobRow
  operations: OperationRow
  snapshots: SnapshotRow
  snapshot_jobs: SnapshotJobRow
  schedules: ScheduleRow & Leased
  box_moves: BoxMoveRow
  last_prompts: LastPromptRow
  port_shares: PortShareRow
  share_viewers: ShareViewerRow
  download_links: DownloadLinkRow
  environments: EnvironmentRow
  environment_versions: EnvironmentVersionRow
  environment_files: EnvironmentFileRow
  box_repos: BoxRepoRow
  secrets: SecretRow
  secret_grants: SecretGrantRow
  secret_mounts: SecretMountRow
  secret_uses: SecretUseRow
  workspace_authorities: WorkspaceAuthorityRow
  federation_keys: FederationKeyRow
  aws_roles: AwsRoleRow
  aws_connects: AwsConnectRow
  idempotency_keys: IdempotencyKeyRow
  deletions: DeletionRow
  program_versions: ProgramVersionRow
  commands: CommandRow
  command_output: CommandOutputRow
  metric_chunks: MetricChunkRow
  process_chunks: ProcessChunkRow
  signing_keys: SigningKeyRow
  sessions: SessionRow
  sign_in_codes: SignInCodeRow
  tickets: TicketRow
  enrollments: EnrollmentRow
  deleted_machines: DeletedMachineRow
  image_downloads: ImageDownloadRow
  policies: PolicyRow
  agent_rollouts: AgentRolloutRow
  audit_log: AuditEventRow
  audit_heads: AuditHeadRow
  audit_sinks: AuditSinkRow & Leased
}
