// Generated from the OpenAPI document by `npm run client:generate`.

/**
 * an email address. Uppercase letters count as lowercase.
 */
export type Email = string
/**
 * limits the key to these boxes: any other box answers 404, and workspace-wide requests answer 403 key_access_denied. Ids of boxes that the user of the key may access and that are not deleted, else 404 not_found. The order does not matter.
 *
 * @minItems 1
 * @maxItems 100
 */
export type KeyBoxes = string[]
/**
 * limits the key: "read" is short for {"boxes": "read", "workspace": "read"}. An absent area is none. A level includes those before it. boxes: read is reading boxes with their files, output and metrics, and snapshots, templates and operations; run is wakes, commands, terminals, prompts and the writing of files; write is all else: the creation, deletion, suspension, resize, move and settings of boxes, snapshots, templates, machines and the command history. workspace: policies, the audit log and settings. history: read is reading the command history without the level write of boxes.
 */
export type KeyAccess =
  | 'read'
  | {
      boxes?: 'none' | 'read' | 'run' | 'write'
      workspace?: 'none' | 'read' | 'write'
      history?: 'none' | 'read'
    }
export type Tier = 'nano' | 'micro' | 'lite' | 'flow' | 'pro' | 'max' | 'ultra'
export type RegionName = 'us-west-2' | 'us-west-1' | 'us-east-1' | 'us-east-2' | 'eu-central-1'
/**
 * RFC 3339, such as 2026-01-31T03:14:00Z or 2026-01-31T04:14:00+01:00, or epoch seconds.
 */
export type Instant = string
/**
 * the hosts in whose HTTPS requests the value is used, in lowercase: a host name, or `*.` and a domain for all names below it, but not the domain itself. Empty: the value is used nowhere
 *
 * @maxItems 32
 */
export type SecretHosts = string[]
/**
 * where the value is used in a request: header, the default; query, the values of the query; path, the path; body, a form or JSON of up to 64 KiB
 *
 * @minItems 1
 * @maxItems 4
 */
export type SecretLocations = ('header' | 'query' | 'path' | 'body')[]
/**
 * owner: may send every request. member: uses every box, snapshot and setting of the workspace, but changes no members and no settings. contractor: uses only their own boxes, which are always restricted, and reads neither members nor policies nor the audit log.
 */
export type Role = 'owner' | 'member' | 'contractor'
/**
 * what each member may spend in a billing cycle, in dollars with at most two decimals. A member who has spent it can create, fork, restore and wake no box, and resize none to a larger tier, until the cycle ends. Without billing, nothing is spent
 */
export type MemberSpendCap = number
/**
 * the number of boxes that each member may have: those that the member has created, also by fork, restore or as enrolled machines, and that are not being deleted
 */
export type MemberBoxLimit = number
/**
 * the longest autoPauseMin that members may set, in minutes. A box that a member creates, forks or restores without one gets this value, and null is refused. Boxes that exist keep theirs until it is changed
 */
export type AutoPauseFloor = number
/**
 * the images that boxes may have: names in which * stands for any text. A name matches as it was requested, and in its full form, such as docker.io/library/debian:12. Boxes that exist keep theirs, but cannot be copied. Boxes without an image are always allowed
 *
 * @maxItems 100
 */
export type AllowedImages = unknown[]
/**
 * RFC 3339, UTC
 */
export type Timestamp = string
export type BoxId = string
export type ObservedState =
  | 'requested'
  | 'provisioning'
  | 'bootstrapping'
  | 'running'
  | 'suspending'
  | 'suspended'
  | 'waking'
  | 'deep_sleep'
  | 'resizing'
  | 'migrating'
  | 'degraded'
  | 'provision_failed'
  | 'terminating'
  | 'terminated'
/**
 * value of `before` for the next page; null on the last page
 */
export type NextBefore = string | null
export type PortShareMode =
  | {
      allowed: true
    }
  | {
      allowed: false
      error: string
      message: string
    }
/**
 * A message of GET /feed
 */
export type FeedMessage =
  | {
      type: 'items'
      kind: 'boxes'
      items: Box[]
    }
  | {
      type: 'items'
      kind: 'snapshots'
      items: Snapshot[]
    }
  | {
      type: 'items'
      kind: 'operations'
      items: Operation[]
    }
  | {
      type: 'ready'
      at: Timestamp
    }
  | {
      type: 'changed'
      kind: 'boxes'
      /**
       * new items, and new versions of items
       */
      items: Box[]
      /**
       * ids of items that are not in the list any more
       */
      removed: string[]
      at: Timestamp
    }
  | {
      type: 'changed'
      kind: 'snapshots'
      /**
       * new items, and new versions of items
       */
      items: Snapshot[]
      /**
       * ids of items that are not in the list any more
       */
      removed: string[]
      at: Timestamp
    }
  | {
      type: 'changed'
      kind: 'operations'
      /**
       * new items, and new versions of items
       */
      items: Operation[]
      /**
       * ids of items that are not in the list any more
       */
      removed: string[]
      at: Timestamp
    }
  | {
      type: 'alive'
      at: Timestamp
    }
/**
 * open terminals and attached commands (`box ssh`, `box attach`, `box exec`), and followed prompts. Requests that wait for a response, and streams of the output of commands, do not count
 */
export type OpenSessions = number
/**
 * the images that boxes may have: names in which * stands for any text. A name matches as it was requested, and in its full form, such as docker.io/library/debian:12. Boxes that exist keep theirs, but cannot be copied. Boxes without an image are always allowed
 *
 * @maxItems 100
 */
export type AllowedImagesOutput = string[]
export type AttachServerMessage =
  | {
      type: 'attached'
      /**
       * of an attached command
       */
      processId?: string
      /**
       * of a terminal
       */
      session?: string
      /**
       * whether this request created the terminal session
       */
      isNew?: boolean
      /**
       * accepted bytes of stdin: the client continues from here
       */
      stdinOffset: number
      stdoutOffset: number
      stderrOffset: number
    }
  | {
      type: 'stdin'
      offset: number
    }
  | {
      type: 'stdinClosed'
    }
  | {
      type: 'skipped'
      stdoutOffset: number
      stderrOffset: number
    }
  | {
      type: 'screen'
      bytes: number
      stdoutOffset: number
      stderrOffset: number
      cols: number
      rows: number
    }
  | {
      type: 'resized'
      cols: number
      rows: number
    }
  | {
      type: 'exit'
      status: 'exited' | 'killed' | 'lost'
      exitCode: number | null
      signal: string | null
      timedOut: boolean
      stdoutOffset: number
      stderrOffset: number
    }
  | {
      type: 'reconnect'
    }
  | {
      type: 'error'
      code: string
      message: string
    }
export type AttachClientMessage =
  | {
      type: 'ack'
      stdoutOffset: number
      stderrOffset: number
    }
  | {
      type: 'stdinEnd'
    }
  | {
      type: 'detach'
    }
  | {
      type: 'resize'
      cols: number
      rows: number
    }
  | {
      type: 'exitReceived'
    }
/**
 * the strongest signal that was needed; null when no process of the run was in progress
 */
export type SentSignal = ('INT' | 'TERM' | 'KILL') | null
export type CommandsRunResponse = ExecResult | ExecStarted
export type PromptsStartResponse = PromptStarted | PromptQueued
export type UsageGetResponse =
  | {
      by: 'box'
      /**
       * in UTC, such as 2030-01
       */
      month: string
      /**
       * micro-dollars: 1000000 is one dollar
       */
      totalMicros: number
      /**
       * the highest amount first
       */
      rows: BoxUsage[]
    }
  | {
      by: 'member'
      /**
       * in UTC, such as 2030-01
       */
      month: string
      /**
       * micro-dollars: 1000000 is one dollar
       */
      totalMicros: number
      /**
       * the highest amount first
       */
      rows: MemberUsage[]
    }
  | {
      by: 'day'
      /**
       * in UTC, such as 2030-01
       */
      month: string
      /**
       * micro-dollars: 1000000 is one dollar
       */
      totalMicros: number
      /**
       * only days with usage, in their order
       */
      rows: DayUsage[]
    }

export interface CreateAgentAccount {
  email: Email
  /**
   * of the workspace, its owner and its key. Default: the part of the email address before the @
   */
  name?: string
}
export interface RequestAgentAccountCode {
  keyId: string
}
export interface ConfirmCode {
  id: string
  /**
   * 8 letters, such as BCDF-GHJK. Case, spaces and hyphens do not matter.
   */
  code: string
}
export interface ChangeEmail {
  email: Email
}
export interface UpdateUser {
  name: string
}
export interface SwitchWorkspace {
  workspaceId: string
}
export interface SignIn {
  email: Email
}
export interface OwnerSignIn {
  /**
   * the content of sign-in.key in the data directory of the coordinator, or the secret of a link of POST /sign-in/owner/link
   */
  secret: string
}
export interface CreateSignInLink {
  /**
   * the content of sign-in.key in the data directory of the coordinator
   */
  secret: string
}
export interface CreateKey {
  /**
   * names are not unique
   */
  name: string
  /**
   * default: api. A machine key has no expiresAt or expiresInDays: it expires 90 days after its last use.
   */
  kind?: 'api' | 'machine'
  /**
   * when the key expires: in the future and at most 3650 days away; null: never. Default: never
   */
  expiresAt?: string | number | null
  /**
   * instead of expiresAt: in days of 24 hours
   */
  expiresInDays?: number
  boxIds?: KeyBoxes | null
  access?: KeyAccess | null
  /**
   * null: a key with no user, which only an owner may create. Absent: the key acts as the user who creates it.
   */
  user?: null
}
/**
 * The fields to change. At least one is required.
 */
export interface UpdateKey {
  name?: string
  /**
   * in the future and at most 3650 days away; null: never. Not for machine keys
   */
  expiresAt?: string | number | null
  /**
   * null removes the limit
   */
  boxIds?: KeyBoxes | null
  /**
   * null removes the limit
   */
  access?: KeyAccess | null
}
export interface CreateBox {
  /**
   * default: a fruit name
   */
  name?: string
  tier?: Tier
  region?: RegionName
  /**
   * the root file system of the box, such as debian:12; needs a region with images (GET /regions). The box keeps it for life. Default: that of the environment, or the default image of the region. Without a region, the box gets the default region, or the first one with images. Not together with fromSnapshotId or fromTemplate
   */
  image?: string
  /**
   * minutes from the request until the box is suspended
   */
  ttlMinutes?: number
  /**
   * minutes from the request until the coordinator deletes the box with its files; default and null: never. A fork and a box from a snapshot do not inherit it
   */
  deleteAfterMinutes?: number | null
  /**
   * idle minutes until the box is suspended; null: never. Default: the policy autoPauseFloorMin for members, else never; on free credit alone 120, which null and any other value replace
   */
  autoPauseMin?: number | null
  /**
   * id or name of an environment, for its latest version; null: none. Default: the default environment of the workspace; of a box from a snapshot, the version that the snapshot has
   */
  environment?: string | null
  /**
   * environment variables of every command on the box
   */
  env?: {
    [k: string]: string
  }
  /**
   * Default: none; of a box from a snapshot, those that its box had. A key has 1 to 63 lowercase letters, digits and any of ._/-, and starts and ends with a letter or digit. A value has at most 63 characters without control characters; it may be empty. At most 32 labels
   */
  labels?: {
    [k: string]: string
  }
  /**
   * safe for third parties: the box gets no secrets, no secret files, no cloud tokens and no links that need no membership, and stays so. The boxes of contractors, and of restricted environments, always are: false is refused for a contractor
   */
  restricted?: boolean
  /**
   * the snapshot whose files the box gets. Region and image, and by default tier and environment variables, are those of the snapshot; restricted is inherited
   */
  fromSnapshotId?: string
  /**
   * the name of a template; as fromSnapshotId, which must then be omitted
   */
  fromTemplate?: string
}
export interface PatchBox {
  /**
   * the new name; the old one is free immediately. A running box keeps its hostname until its next start; a container of Docker or Podman keeps it then too.
   */
  name?: string
  /**
   * idle minutes until the box is suspended; null: never, also on free credit
   */
  autoPauseMin?: number | null
  /**
   * minutes from the request until the box is suspended; null: never
   */
  ttlMinutes?: number | null
  /**
   * minutes from the request until the coordinator deletes the box with its files, in whatever state, also an enrolled machine; null: never
   */
  deleteAfterMinutes?: number | null
  /**
   * when the box is suspended, in RFC 3339 or epoch seconds: in the future, at most 30 days from the request; null: never. Not together with ttlMinutes.
   */
  pauseAt?: string | number | null
  /**
   * hours between automatic snapshots; null: none
   */
  autoSnapshotHours?: number | null
  /**
   * automatic snapshots that are kept; older ones are deleted
   */
  autoSnapshotKeep?: number
  /**
   * changes the labels of these keys, and keeps the others; null removes a label. A key has 1 to 63 lowercase letters, digits and any of ._/-, and starts and ends with a letter or digit. A value has at most 63 characters without control characters; it may be empty. At most 32 labels
   */
  labels?: {
    [k: string]: string | null
  }
  /**
   * whether the box stays awake when the quiet hours of the workspace start. May only be set by an owner of the workspace
   */
  quietHoursExempt?: boolean
  /**
   * replaces all environment variables of the box, from the next command on. Not together with other fields.
   */
  env?: {
    [k: string]: string
  }
}
export interface CreateDownloadLink {
  /**
   * of a file or directory: absolute, or relative to the home directory
   */
  path: string
}
export interface ForkBox {
  /**
   * default: a fruit name
   */
  name?: string
  tier?: Tier
  /**
   * id or name, for its latest version; null: none. Default: the version that the source had
   */
  environment?: string | null
  /**
   * keep the snapshot that the fork makes; otherwise it is deleted when the new box has its files
   */
  keepSnapshot?: boolean
}
/**
 * must have either ownerUserId or email
 */
export interface GiveBox {
  /**
   * the id of the member who gets the box, as in GET /members
   */
  ownerUserId?: string
  email?: Email
}
export interface CreatePortShare {
  port: number
  /**
   * default: members. Without it, a link that the port already has is returned
   */
  access?: 'members' | 'anyone' | 'public'
  /**
   * lifetime of a link for anyone or a public one, in seconds; default 604800
   */
  expiresIn?: number
  /**
   * default: false. Also changes the setting of a link that the port already has
   */
  rewriteHost?: boolean
}
export interface MoveBox {
  region: RegionName
}
export interface ResizeBox {
  target_tier: Tier
}
/**
 * secretId and envName for an existing secret; or name, value and envName, and optionally hosts, in and description, for a new one, which is granted to this box
 */
export interface MountSecret {
  secretId?: string
  name?: string
  /**
   * never returned. A value with several lines is not used in a header, except in `Authorization: Basic`, which encodes it
   */
  value?: string
  /**
   * the variable of the box that has the placeholder
   */
  envName: string
  hosts?: SecretHosts
  in?: SecretLocations
  description?: string | null
}
export interface CreateTemplate {
  name: string
  description?: string | null
}
export interface CreateTicketRequest {
  /**
   * lifetime of the ticket, 60 to 3600 seconds; default 600. It never exceeds that of the session
   */
  expiresInSeconds?: number
}
export interface CreateEnrollment {
  /**
   * the name of the box. Default: the hostname of the machine if it is free, else a fruit name
   */
  name?: string
  /**
   * a label. Default: the region of boxes that are created without one
   */
  region?: 'us-west-2' | 'us-west-1' | 'us-east-1' | 'us-east-2' | 'eu-central-1'
  /**
   * safe for third parties: the box gets no secrets and no links that need no membership
   */
  restricted?: boolean
  /**
   * environment variables of every command on the box
   */
  env?: {
    [k: string]: string
  }
}
/**
 * The settings to change. paused: false also offers builds again that have failed on a box.
 */
export interface PatchAgentRollout {
  share?: number
  paused?: boolean
}
export interface CreateSnapshot {
  boxId: string
  name: string
  description?: string | null
}
export interface RestoreSnapshot {
  /**
   * default: a fruit name
   */
  name?: string
  tier?: Tier
  /**
   * id or name, for its latest version; null: none. Default: the version that the source had
   */
  environment?: string | null
}
export interface NameTemplate {
  name: string
}
export interface PullImage {
  image: string
  region?: RegionName
}
export interface CreateEnvironment {
  name: string
  description?: string | null
  isDefault?: boolean
  /**
   * NAME to value; at most 100 names and 64 KiB
   */
  vars?: {
    [k: string]: string
  }
  /**
   * @maxItems 64
   */
  files?: EnvironmentFile[]
  /**
   * @maxItems 32
   */
  repos?: EnvironmentRepo[]
  /**
   * null: none
   */
  image?: string | null
  toggles?: ChangeEnvironmentToggles
}
export interface EnvironmentFile {
  path: string
  /**
   * text; or contentBase64
   */
  content?: string
  contentBase64?: string
  /**
   * octal; default 0600
   */
  mode?: string
}
export interface EnvironmentRepo {
  repo: string
  /**
   * the directory of the clone; default: `~/` and the last part of the URL
   */
  path?: string
  /**
   * a branch, a tag or a commit; default: the default branch
   */
  ref?: string
  /**
   * the name of a secret of the workspace, for a private repository: git sends its placeholder, so that no token is on the box
   */
  secret?: string
}
export interface ChangeEnvironmentToggles {
  /**
   * safe for third parties: boxes of the environment are restricted. They get no secrets, no secret files, no cloud tokens and no links that need no membership, and the three channels have no effect
   */
  restricted?: boolean
  git?: boolean
  cloud?: boolean
  codingAgents?: boolean
}
/**
 * vars, files and repos replace all of their kind; toggles replaces those that it has
 */
export interface PatchEnvironment {
  name?: string
  description?: string | null
  isDefault?: boolean
  /**
   * NAME to value; at most 100 names and 64 KiB
   */
  vars?: {
    [k: string]: string
  }
  /**
   * @maxItems 64
   */
  files?: EnvironmentFile[]
  /**
   * @maxItems 32
   */
  repos?: EnvironmentRepo[]
  /**
   * null: none
   */
  image?: string | null
  toggles?: ChangeEnvironmentToggles
}
export interface SetEnvironmentVariable {
  name: string
  value: string
}
export interface CreateSecret {
  name: string
  /**
   * never returned. A value with several lines is not used in a header, except in `Authorization: Basic`, which encodes it
   */
  value: string
  description?: string | null
  hosts?: SecretHosts
  in?: SecretLocations
  /**
   * written with the secret, or nothing is written
   *
   * @maxItems 500
   */
  grants?: Grantee[]
  /**
   * public text before the placeholder, for clients that check the shape of a key, such as `xoxb-`
   */
  placeholderPrefix?: string
}
/**
 * must have exactly one of boxId, userId and email
 */
export interface Grantee {
  boxId?: string
  userId?: string
  email?: Email
}
export interface PatchSecret {
  /**
   * the new value; the placeholder stays
   */
  value?: string
  description?: string | null
  hosts?: SecretHosts
  in?: SecretLocations
  /**
   * removes the grants: every box that is not restricted may use the secret
   */
  scope?: 'workspace'
}
export interface InviteMember {
  email: Email
  /**
   * default: the part of the email address before the @
   */
  name?: string
  role: Role
}
/**
 * The fields to change. At least one is required.
 */
export interface UpdateMember {
  role?: Role
  name?: string
}
export interface Checkout {
  /**
   * dollars, with at most two decimals
   */
  amountUsd: number
  /**
   * true: later payments are taken from the card when the balance is low
   */
  saveCard?: boolean
}
/**
 * The fields to change. At least one is required.
 */
export interface UpdateWorkspace {
  name?: string
  /**
   * true also erases what is stored already, in the background, also of terminated boxes. Logs on the boxes and environment variables stay. false does not restore what has been erased.
   */
  zeroDataRetention?: boolean
}
export interface CloseWorkspace {
  /**
   * the name of the workspace, which confirms the request
   */
  name: string
}
/**
 * The policies to change. null: back to the default, which is off for most.
 */
export interface PatchPolicy {
  memberSpendCapUsd?: MemberSpendCap | null
  memberBoxLimit?: MemberBoxLimit | null
  memberMaxTier?: Tier | null
  autoPauseFloorMin?: AutoPauseFloor | null
  quietHours?: QuietHours | null
  auditRetentionDays?: number | null
  allowedImages?: AllowedImages | null
  machineEnrollment?: ('owner' | 'member') | null
  anyoneLinksOwnerOnly?: boolean | null
  shareLinks?: boolean | null
}
/**
 * Hours of the week. When a period starts, all running boxes are suspended once, apart from enrolled machines and boxes with quietHoursExempt; requests in progress are interrupted. A box that is created or woken afterwards stays awake until the next period starts. Overlapping and adjacent periods are one. A start that daylight saving time skips is at the next minute that exists; a repeated one happens once. A change applies from the next start
 */
export interface QuietHours {
  /**
   * HH:MM, 24 hours, in the time zone
   */
  start: string
  /**
   * HH:MM; differs from start. Before start: the period ends on the next day.
   */
  end: string
  /**
   * the days on which the period starts
   *
   * @maxItems 7
   */
  days: unknown[]
  /**
   * the days that are quiet from midnight to midnight
   *
   * @maxItems 7
   */
  allDayDays: unknown[]
  /**
   * IANA name, such as Europe/Berlin
   */
  timezone: string
}
export interface CreateWorkspace {
  /**
   * names are not unique
   */
  name: string
}
export interface PutAuditSink {
  /**
   * an https URL of at most 2048 characters without user name, password and fragment. Its host must have public addresses only, unless the operator allows private ones.
   */
  url: string
  /**
   * the first event to deliver: `now` is this request itself, `start` is the oldest stored event. Default: now for a new endpoint; otherwise deliveries continue after the last delivered event.
   */
  from?: 'now' | 'start'
}
export interface Credit {
  /**
   * dollars, with at most two decimals; below 0: an adjustment that is no payment
   */
  amountUsd: number
  /**
   * true: a gift, which is no payment. A payment ends the limits of free credit
   */
  free?: boolean
  /**
   * shown to the owners of the workspace
   */
  note?: string
  /**
   * identifies the credit in the workspace, such as the number of an invoice. A repeated request with the same cause has no further effect. Default: a new one
   */
  cause?: string
}
export interface HoldWorkspace {
  reason: 'mining' | 'cpu'
}
export interface ExecRequest {
  /**
   * run by sh -c as the box user
   */
  command: string
  /**
   * a relative or ~/ path resolves under the home directory, the default
   */
  cwd?: string
  /**
   * default 30; detached and attached commands have no time limit by default
   */
  timeoutSeconds?: number
  env?: {
    [k: string]: string
  }
  detached?: boolean
  /**
   * start the command for GET /exec/{processId}/attach. Its output waits for the client. The command is terminated when no client has been attached for disconnectTimeoutSeconds. Excludes detached
   */
  attached?: boolean
  /**
   * only with attached: the attached client sends stdin. Default: no stdin
   */
  stdin?: boolean
  /**
   * only with attached; default 60
   */
  disconnectTimeoutSeconds?: number
}
export interface TerminalStart {
  /**
   * default: the lowest number that is not in use
   */
  session?: string
  /**
   * run by sh -c as the box user; default: the login shell of the user
   */
  command?: string
  /**
   * a relative or ~/ path resolves under the home directory, the default
   */
  cwd?: string
  env?: {
    [k: string]: string
  }
  /**
   * value of TERM; default xterm-256color
   */
  term?: string
  /**
   * default 80
   */
  cols?: number
  /**
   * default 24
   */
  rows?: number
}
export interface PromptRequest {
  /**
   * the coding agent
   */
  provider: 'claude' | 'codex' | 'opencode' | 'pi'
  /**
   * at most 512 KiB as UTF-8, else 413 payload_too_large
   */
  prompt: string
  /**
   * a name that the coding agent knows. The prefixes amazon-bedrock/, openrouter/ and deepseek/ select a backend. Default: the model of the conversation, else the default of the coding agent
   */
  model?: string
  /**
   * default: that of the coding agent
   */
  reasoningEffort?: 'low' | 'medium' | 'high'
  /**
   * working directory of a new conversation, resolved under the home directory, the default. A conversation keeps its directory
   */
  cwd?: string
  /**
   * start a new conversation, even while other runs are in progress
   */
  new?: boolean
  /**
   * continue this conversation. Excludes new and continue
   */
  conversationId?: string
  /**
   * continue the most recently active conversation of the provider that has a session. Excludes new and conversationId
   */
  continue?: boolean
  /**
   * wait instead of failing while the conversation has a run in progress, or the box has reached its limit of runs. Without new, conversationId and continue: follow the run of the same provider that is in progress
   */
  queue?: boolean
  /**
   * let the coding agent run all tools without asking for permission. Default false. pi always does: for pi, false is refused
   */
  auto?: boolean
}
export interface WriteFile {
  path: string
  content: string
  /**
   * default: utf8
   */
  encoding?: 'utf8' | 'base64'
  mode?: string
}
export interface MakeDirectory {
  path: string
  /**
   * true: create missing parent directories too, and accept a directory that exists. Default: false
   */
  parents?: boolean
}
export interface MoveFile {
  from: string
  /**
   * the new path of the entry itself, also when it is the path of an existing directory
   */
  to: string
  /**
   * true: replace an existing file, or an existing empty directory by a directory. Default: false
   */
  overwrite?: boolean
}
export interface DesktopStart {
  /**
   * desktop, the default: a window manager and a terminal; browser: Chromium on the whole screen
   */
  mode?: 'desktop' | 'browser'
  /**
   * pixels; default 1280
   */
  width?: number
  /**
   * pixels; default 800
   */
  height?: number
  /**
   * dots per inch; default 96
   */
  dpi?: number
  /**
   * the page that mode browser opens; default: an empty page
   */
  url?: string
}
export interface DesktopStop {
  /**
   * default desktop
   */
  mode?: 'desktop' | 'browser'
}
/**
 * The body of a POST to the endpoint of the audit log. A status of 2xx within 15 seconds confirms it.
 */
export interface AuditDelivery {
  workspaceId: string
  /**
   * 1 to 500 events as in GET /audit, by id, ascending
   */
  events: AuditEvent[]
  /**
   * the events up to this id were deleted after their retention, before they could be delivered; null: no event is missing before this batch
   */
  skippedThrough: number | null
}
export interface AuditEvent {
  /**
   * ascending within the workspace, from 1 and without gaps
   */
  id: number
  at: Timestamp
  kind: string
  /**
   * server: recorded by the coordinator; client: reported with POST /audit
   */
  origin: 'server' | 'client'
  /**
   * cli: an API key that `box login` has created; system: the coordinator itself
   */
  actorKind: 'user' | 'cli' | 'ticket' | 'mobile' | 'system'
  actorUserId: string | null
  /**
   * the id of the API key, session or ticket
   */
  actorTokenId: string | null
  boxId: string | null
  /**
   * fields of the kind; empty when zero data retention has erased them
   */
  detail: {
    [k: string]: string | number | boolean | null
  }
  /**
   * SHA-256 (hex) of the event and the hash of the event before it; see GET /audit/chain
   */
  hash: string
}
/**
 * A new workspace with an API key of its owner
 */
export interface AgentAccount {
  key: ApiKey
  /**
   * dcp_…, for the header Authorization: Bearer. Until the code is confirmed, it is accepted only on GET /me.
   */
  secret: string
  workspace: {
    id: string
    name: string
  }
  /**
   * the id of the emailed code, such as sic_…
   */
  codeId: string
  codeExpiresAt: Timestamp
}
/**
 * An API key, without its secret
 */
export interface ApiKey {
  /**
   * key_…. Not secret
   */
  id: string
  name: string
  /**
   * api: for a script or an agent. machine: the CLI signed in with it; it expires 90 days after its last use.
   */
  kind: 'api' | 'machine'
  /**
   * the user as whom the key acts; null: a key with no user, which has the role member
   */
  userId: string | null
  /**
   * the last 4 characters of the secret, to recognise it; null: unknown
   */
  ending: string | null
  createdAt: Timestamp
  /**
   * the last request with the current secret, up to a minute late; null: not used yet
   */
  lastUsedAt: Timestamp | null
  /**
   * from this instant on, requests with the key get 401 token_expired; null: never. Of a machine key, it moves with use, up to a minute late.
   */
  expiresAt: Timestamp | null
  /**
   * ids of the boxes that the key may access, sorted; null: all boxes
   */
  boxIds: string[] | null
  /**
   * the level of the key per area; null: everything that the role of its user allows
   */
  access: {
    boxes?: 'none' | 'read' | 'run' | 'write'
    workspace?: 'none' | 'read' | 'write'
    history?: 'none' | 'read'
  } | null
  /**
   * from this instant on, requests with the key get 401 unauthorized
   */
  revokedAt: Timestamp | null
}
/**
 * Error response of the control plane. Codes are stable.
 */
export interface ControlError {
  error: string
  message?: string
  [k: string]: unknown
}
export interface CurrentSession {
  session: Session
  user: SessionUser
  workspace: {
    id: string
    name: string
  }
  /**
   * the workspaces of which the person is a member, sorted by name
   */
  workspaces: {
    id: string
    name: string
    role: 'owner' | 'member' | 'contractor'
  }[]
  /**
   * as `provider` of GET /billing
   */
  billing: 'off' | 'manual' | 'stripe'
}
/**
 * A sign-in of a user to a workspace, with a cookie
 */
export interface Session {
  /**
   * the id of the session, such as ses_…; not a secret
   */
  id: string
  createdAt: Timestamp
  lastUsedAt: Timestamp
  expiresAt: Timestamp
  /**
   * the header User-Agent of the sign-in, shortened to 200 characters
   */
  userAgent: string | null
  /**
   * the IP address of the sign-in
   */
  address: string | null
  /**
   * whether the request was sent with this session
   */
  isCurrent: boolean
}
export interface SessionUser {
  id: string
  /**
   * lowercase; null: the first owner of the coordinator has not set one
   */
  email: string | null
  name: string
  role: 'owner' | 'member' | 'contractor'
}
/**
 * A code that was sent by email
 */
export interface IssuedCode {
  /**
   * the id of the code, such as sic_…
   */
  id: string
  expiresAt: Timestamp
}
/**
 * The session whose cookie the response sets
 */
export interface SignedIn {
  session: Session
  user: SessionUser
  workspace: {
    id: string
    name: string
  }
}
export interface SignInLink {
  /**
   * signs in once. The page /sign-in accepts it as the fragment: /sign-in#SECRET
   */
  secret: string
  expiresAt: Timestamp
}
export interface Account {
  /**
   * the account that owns the workspace
   */
  customer: {
    /**
     * the workspace id
     */
    id: string
    email: string | null
    /**
     * always null
     */
    githubLogin: string | null
    /**
     * active: the workspace is in use. unverified: the emailed code of the caller's new agent account is not confirmed. closing: the closing of the workspace was requested; everything is removed after workspace.purgeAfter
     */
    status: 'active' | 'unverified' | 'closing'
    /**
     * always null
     */
    onboardingStep: string | null
    /**
     * always null
     */
    onboardingCompletedAt: Timestamp | null
    createdAt: Timestamp
    name: string
  }
  user: {
    /**
     * as in actors of events and records
     */
    id?: string
    email: string | null
    name: string
    role: 'owner' | 'member' | 'contractor'
  } | null
  workspace: {
    id: string
    name: string
    zeroDataRetention?: boolean
    closingAt?: Timestamp | null
    purgeAfter?: Timestamp | null
  }
  billing: {
    /**
     * micro-dollars: 1000000 is one dollar
     */
    balanceMicros: number
    /**
     * micro-dollars: 1000000 is one dollar
     */
    burnMicrosPerHour: number
    /**
     * null while nothing is charged
     */
    runwayHours: number | null
    /**
     * 0: billing is off
     */
    warnBelowHours: number
    planAmountUsd: number
    overage: boolean
    /**
     * what the workspace may owe while its boxes run: as much as its saved card has paid, up to a maximum of the operator. 0: no card is saved, or it has not paid for too long
     */
    overdraftMicros: number
    collecting: boolean
    paymentFailed: boolean
    paymentGraceUntil: Timestamp | null
    trial: boolean
    billingUrl: string | null
    /**
     * why an operator has paused the workspace (workspace_held); null: it is not paused
     */
    hold: ('mining' | 'cpu') | null
  } | null
  boxes: Box[]
  edge: {
    url: string
  }
  /**
   * absent for a dashboard session
   */
  key?: {
    id: string
    kind: 'machine' | 'api'
    expiresAt: Timestamp | null
    /**
     * ids of the boxes that the key may access; null: all boxes
     */
    boxIds: string[] | null
  }
  /**
   * access level per area; present only for a limited key
   */
  access?: {
    boxes?: 'none' | 'read' | 'run' | 'write'
    workspace?: 'none' | 'read' | 'write'
    history?: 'none' | 'read'
  }
  /**
   * @deprecated
   * the oldest live box of `boxes`; use these instead
   */
  box: Box | null
}
export interface Box {
  id: BoxId
  hostname: string
  /**
   * machine: a machine of its own that was enrolled with POST /machines. Its power, size and files are not managed by the coordinator. managed: every other box.
   */
  kind: 'managed' | 'machine'
  tier: Tier
  region: RegionName
  desiredRegion: RegionName | null
  desiredState: 'running' | 'suspended' | 'terminated'
  observedState: ObservedState
  /**
   * of a suspended box: frozen: its processes keep their memory and continue when the box is woken; stopped: its processes have been terminated. Otherwise null.
   */
  suspendedAs: ('frozen' | 'stopped') | null
  autoPauseMin: number | null
  pauseAt: Timestamp | null
  /**
   * when the coordinator deletes the box, in whatever state; null: never
   */
  deleteAt: Timestamp | null
  autoSnapshotHours: number | null
  autoSnapshotKeep: number
  environmentId: string | null
  environmentVersionNo: number | null
  envVars: {
    name: string
    value: string
  }[]
  /**
   * labels by which people and scripts select boxes. They have no effect on the box. A fork, and a box from a snapshot, get those of the source.
   */
  labels: {
    [k: string]: string
  }
  restricted: boolean
  ownerUserId: string
  quietHoursExempt: boolean
  /**
   * the image of the box, as it was requested; null: the box uses the programs of the machine on which it runs
   */
  image: string | null
  /**
   * the content of the image, such as sha256:…; null: not known yet, or the box has no image
   */
  imageDigest: string | null
  /**
   * null until the box has a machine
   */
  isolation: Isolation | null
  createdAt: Timestamp
  updatedAt: Timestamp
}
/**
 * How the box is isolated from its host and from other boxes
 */
export interface Isolation {
  /**
   * bubblewrap, namespaces: separate file-system view, processes and hostname; process: separate home directory. Under a root coordinator each box also has its own uid. container: a container with a root file system of its own; vm: a virtual machine.
   */
  level: 'bubblewrap' | 'namespaces' | 'process' | 'container' | 'vm'
  /**
   * the limits that cgroups enforce: cpu and memory of the tier; pids: 4096 processes and threads
   */
  limits: ('cpu' | 'memory' | 'pids')[]
  /**
   * own: the box has its own loopback interface and outbound connections, and cannot reach the loopback addresses of the host; host: the box shares the network of the host
   */
  network: 'own' | 'host'
}
export interface BoxDetail {
  box: Box
  /**
   * Desired and observed state, and the connection of the agent
   */
  state: {
    desired: 'running' | 'suspended' | 'terminated'
    observed: ObservedState
    /**
     * whether the agent is connected
     */
    connected: boolean
    since: Timestamp
    lastHeartbeatAt: Timestamp | null
  }
  vitals: Vitals | null
  /**
   * null until the agent has reported it
   */
  machine: Machine | null
  /**
   * what the box has: the size of its tier, or less where the machine that runs it has less; null for a machine that was enrolled. Which limits are enforced is in box.isolation.
   */
  size: {
    cpus: number
    memoryBytes: number
    diskBytes: number
  } | null
  /**
   * newest first
   *
   * @maxItems 50
   */
  events: BoxEvent[]
  job: Job | null
  /**
   * how many times the processes of the box have continued with their memory after a suspend
   */
  pausesSurvived: number
  environment: {
    id: string
    name: string
    versionNo: number
    latestVersionNo: number
    /**
     * when the environment was deleted: the box keeps its version; null: it was not
     */
    deletedAt: Timestamp | null
  } | null
  envVars: {
    name: string
    value: string
  }[]
  restricted: boolean
}
/**
 * From the last heartbeat. Percentages, 0 to 100, are relative to the limits of the box; null: no sample yet, or the figure is not known for this box.
 */
export interface Vitals {
  cpu_pct: number | null
  mem_pct: number | null
  disk_pct: number | null
  idle_for_sec: number
  listeners_count: number
  agent_version: string
  coding_agents?: CodingAgents
}
/**
 * Which coding agents can be prompted. not_installed: the program is not on the PATH of a login shell, or does not work; opencode and pi are then installed by the first prompt. ready: there is a credential, which may have expired
 */
export interface CodingAgents {
  claude: 'ready' | 'not_signed_in' | 'not_installed'
  codex: 'ready' | 'not_signed_in' | 'not_installed'
  opencode: 'ready' | 'not_signed_in' | 'not_installed'
  pi: 'ready' | 'not_signed_in' | 'not_installed'
}
/**
 * The machine of a box, with the limits of the box. null: not limited, or not known.
 */
export interface Machine {
  /**
   * distribution and version
   */
  os: string
  /**
   * release of the kernel
   */
  kernel: string
  /**
   * as in Node, such as x64 or arm64
   */
  arch: string
  cpuModel: string
  /**
   * CPUs; may be a fraction
   */
  cpuCount: number | null
  memoryBytes: number | null
  diskBytes: number | null
}
export interface BoxEvent {
  id: string
  fromState: ObservedState | null
  toState: ObservedState
  reason: string
  /**
   * of a box that could not be created because of its image: an error code, such as image_not_found. Otherwise null
   */
  code: string | null
  /**
   * user:<id>, key:<id> or system
   */
  actor: string
  at: Timestamp
}
/**
 * The state change in progress
 */
export interface Job {
  op:
    | 'create'
    | 'enroll'
    | 'wake'
    | 'suspend'
    | 'stop'
    | 'sleep'
    | 'resize'
    | 'move'
    | 'recover'
    | 'reconnect'
    | 'clean_up'
    | 'delete'
  step: string
  attempt: number
  lastError: string | null
  nextRetryAt: Timestamp | null
}
export interface Operation {
  id: string
  kind: 'box_delete' | 'snapshot_delete'
  targetId: string
  status: 'pending' | 'processing' | 'completed' | 'failed'
  requestedAt: Timestamp
  completedAt: Timestamp | null
  error: string | null
}
export interface DownloadLink {
  /**
   * a path on the coordinator, for GET with the same credential
   */
  url: string
  expiresAt: Timestamp
}
export interface Snapshot {
  id: string
  name: string
  description: string | null
  status: 'creating' | 'available' | 'failed' | 'deleting'
  /**
   * manual: POST /snapshots; template: has a templateName; fork: the copy that a fork makes; auto: by autoSnapshotHours; final: taken when the box was deleted
   */
  kind: 'manual' | 'template' | 'fork' | 'auto' | 'final'
  templateName: string | null
  /**
   * when the snapshot is deleted. auto: after autoSnapshotHours times (autoSnapshotKeep + 1), at least 7 days; the copy of a fork: after 24 hours, or earlier when the new box has its files. Otherwise null
   */
  expiresAt: Timestamp | null
  boxId: string
  sourceBoxHostname: string
  tier: Tier
  region: RegionName
  /**
   * the image of the box; null: it had none
   */
  image: string | null
  /**
   * the disk space that the files need in a box, in units of 10^9 bytes; null until the snapshot is available
   */
  sizeGb: number | null
  /**
   * how long the processes of the box were paused, in milliseconds; null: the box was not running, or the snapshot is not available
   */
  pausedMs: number | null
  /**
   * why the snapshot failed
   */
  error: string | null
  createdAt: Timestamp
}
export interface Metrics {
  /**
   * version of this format
   */
  v: 1
  /**
   * seconds per bucket; follows from the time span
   */
  res: 30 | 300 | 3600
  from: Timestamp
  to: Timestamp
  /**
   * The start of each bucket, in seconds since the epoch: multiples of res, ascending, without gaps. The last bucket may not be complete.
   */
  buckets: number[]
  /**
   * The series of the whole box.
   */
  series: {
    cpu_pct: MetricsValues
    cpu_count: MetricsValues
    mem_used_bytes: MetricsValues
    mem_total_bytes: MetricsValues
    load1: MetricsValues
    load5: MetricsValues
    load15: MetricsValues
    process_count: MetricsValues
    listener_count: MetricsValues
    disk_read_bytes_per_sec: MetricsValues
    disk_write_bytes_per_sec: MetricsValues
  }
  /**
   * The file systems with samples in the range, by mount point.
   */
  fs: {
    used_bytes: MetricsValues
    total_bytes: MetricsValues
    read_bytes_per_sec: MetricsValues
    write_bytes_per_sec: MetricsValues
    /**
     * the mount point
     */
    mount: string
  }[]
  /**
   * The network interfaces with samples in the range, by name. Empty for a box that shares the network of its host.
   */
  ifaces: {
    rx_bytes_per_sec: MetricsValues
    tx_bytes_per_sec: MetricsValues
    /**
     * the name of the interface, such as eth0
     */
    name: string
  }[]
}
/**
 * One value per bucket. null: no sample, or not known for this box.
 */
export interface MetricsValues {
  /**
   * the mean of the samples in each bucket
   */
  avg: (number | null)[]
  /**
   * the largest sample in each bucket
   */
  max: (number | null)[]
}
export interface CreatePortShareResponse {
  share: PortShare
  /**
   * the link of another audience that the port had, which has been revoked
   */
  replaced?: {
    /**
     * starts with shr_
     */
    id: string
    /**
     * members: signed-in members of the workspace who see the box; anyone: clients with the link, which contains a secret; public: all clients
     */
    access: 'members' | 'anyone' | 'public'
  }
}
export interface PortShare {
  /**
   * starts with shr_
   */
  id: string
  boxId: string
  /**
   * the name of the box
   */
  hostname: string
  port: number
  /**
   * the first label of the host name; renaming the box keeps it
   */
  slug: string
  /**
   * members: signed-in members of the workspace who see the box; anyone: clients with the link, which contains a secret; public: all clients
   */
  access: 'members' | 'anyone' | 'public'
  /**
   * the link. The link for anyone contains a secret, and only the response that created it has this link: it is null in all others
   */
  url: string | null
  /**
   * the origin of the link, without its secret
   */
  origin: string
  /**
   * true: the box gets requests with `Host: localhost:<port>`, for servers that refuse other names
   */
  rewriteHost: boolean
  /**
   * null: links for members do not expire
   */
  expiresAt: Timestamp | null
  /**
   * user:<id> or key:<id>
   */
  createdBy: string
  createdAt: Timestamp
  /**
   * how often the link was opened; up to ten seconds late
   */
  openCount: number
  lastOpenedAt: Timestamp | null
}
export interface PortShares {
  /**
   * whether this deployment shares ports with members
   */
  enabled: boolean
  /**
   * whether this deployment shares ports by links that need no membership
   */
  linksEnabled: boolean
  /**
   * by audience: what sharing another port would respond
   */
  modes: {
    members: PortShareMode
    anyone: PortShareMode
    public: PortShareMode
  }
  /**
   * the links that are neither revoked nor expired, oldest first. It includes links that the deployment or the policy shareLinks has turned off
   */
  shares: PortShare[]
  /**
   * null when the box has not reported for three minutes, and while it is suspended
   */
  listening: Listening | null
}
export interface Listening {
  at: Timestamp
  /**
   * listening TCP ports, ascending
   */
  ports: ListeningPort[]
}
export interface ListeningPort {
  port: number
  /**
   * the name of the process; null: unknown
   */
  process: string | null
  pid: number | null
}
export interface ProcsAt {
  /**
   * version of this format
   */
  v: 1
  at: Timestamp
  /**
   * by pid, ascending
   */
  procs: SnapshotProcess[]
  /**
   * listening TCP ports, ascending
   */
  ports: ListeningPort[]
  /**
   * processes of the box; larger than the number of procs when there were more than 1000
   */
  total: number
}
export interface SnapshotProcess {
  pid: number
  /**
   * the pid of the parent; 0: none in the box
   */
  ppid: number
  /**
   * the name of the user, or its number
   */
  user: string
  /**
   * the file name of the program, or what the process chose
   */
  name: string
  /**
   * the first 256 characters; null: not recorded
   */
  command: string | null
  /**
   * percent of one CPU since the previous snapshot; in the first one of an agent, since the start of the process
   */
  cpuPct: number
  /**
   * resident memory, rounded to 0.4 percent
   */
  memBytes: number
  startedAt: Timestamp
}
export interface SecretMount {
  /**
   * starts with smt_
   */
  id: string
  envName: string
  secret: {
    /**
     * starts with sec_
     */
    id: string
    name: string
    /**
     * what boxes have instead of the value; it never changes
     */
    placeholder: string
    hosts: string[]
  }
}
export interface CreateTicketResponse {
  ticket: {
    /**
     * starts with tkt_; identifies the ticket in the audit log
     */
    id: string
    boxId: string
    expiresAt: Timestamp
  }
  /**
   * the credential, which starts with dct_; shown only here
   */
  secret: string
}
export interface PortShareList {
  /**
   * whether this deployment shares ports with members
   */
  enabled: boolean
  /**
   * whether this deployment shares ports by links that need no membership
   */
  linksEnabled: boolean
  /**
   * by audience: what sharing another port would respond
   */
  modes: {
    members: PortShareMode
    anyone: PortShareMode
    public: PortShareMode
  }
  /**
   * the links that are neither revoked nor expired, oldest first. It includes links that the deployment or the policy shareLinks has turned off
   */
  shares: PortShare[]
  nextBefore?: NextBefore
}
export interface OpenPortShareResponse {
  /**
   * can be opened once
   */
  url: string
  expiresAt: Timestamp
}
export interface CreateEnrollmentResponse {
  enrollment: Enrollment
  /**
   * bxe_…: works once, within 60 minutes; shown only here
   */
  token: string
  /**
   * the line to run on the machine
   */
  command: string
}
/**
 * A token for enrolling one machine, without the token
 */
export interface Enrollment {
  /**
   * enr_…. Not secret
   */
  id: string
  /**
   * null: the name is chosen when the token is used
   */
  name: string | null
  region: RegionName
  restricted: boolean
  /**
   * user:<id> or key:<id>
   */
  createdBy: string
  createdAt: Timestamp
  expiresAt: Timestamp
}
export interface AgentRollout {
  /**
   * the percentage of the boxes that get new builds
   */
  share: number
  /**
   * whether no agent gets another build
   */
  paused: boolean
  /**
   * the id of the user who made the last change; null: there was none, or a key did
   */
  updatedBy: string | null
  updatedAt: Timestamp | null
}
export interface Agent {
  boxId: BoxId
  hostname: string
  /**
   * such as 1.0.0+4f2a81c09d3e5b76: the version and the build; null: the agent has not connected yet
   */
  version: string | null
  /**
   * the build that the coordinator offers; null: unknown, or the agent is offline
   */
  targetBuild: string | null
  /**
   * current: runs the build that the coordinator offers. outdated: runs another one. upgrading: gets the build, or waits until its box is not in use. failed: returned from the build, which did not connect. offline: not connected.
   */
  state: 'current' | 'outdated' | 'upgrading' | 'failed' | 'offline'
  /**
   * why the agent is outdated, upgrading or failed
   */
  detail: string | null
}
export interface Command {
  id: string
  boxId: BoxId
  mode: 'sync' | 'detached'
  source: 'cli' | 'api'
  /**
   * at most the first 8192 characters
   */
  command: string | null
  commandTruncated: boolean
  /**
   * as given in the request; ~ when the request has none
   */
  cwd: string | null
  status: 'running' | 'exited' | 'killed' | 'timed_out' | 'failed' | 'lost'
  exitCode: number | null
  /**
   * name without SIG, such as TERM, or a real-time signal number
   */
  signal: string | null
  pid: number | null
  startedAt: Timestamp
  finishedAt: Timestamp | null
  actor: {
    kind: 'user' | 'cli' | 'ticket' | 'mobile' | 'system'
    userId: string | null
    tokenId: string | null
  }
  /**
   * length of the stream, including bytes that are not stored
   */
  stdoutBytes: number
  stderrBytes: number
  /**
   * whether some bytes of the stream are not stored
   */
  stdoutTruncated: boolean
  stderrTruncated: boolean
  /**
   * false under zero data retention
   */
  outputKept: boolean
}
export interface CommandOutput {
  stream: 'stdout' | 'stderr'
  encoding: 'utf8' | 'base64'
  /**
   * offset of the first byte of `data`: the requested offset plus `skipped`
   */
  offset: number
  /**
   * value of `offset` for the next page
   */
  nextOffset: number
  /**
   * length of the stream so far
   */
  size: number
  /**
   * bytes after the requested offset that are not stored
   */
  skipped: number
  /**
   * utf8 pages end between characters, and may exceed `limit` by up to 3 bytes for a whole last character
   */
  data: string
  status: 'running' | 'exited' | 'killed' | 'timed_out' | 'failed' | 'lost'
  /**
   * whether the command has exited and this page reaches the end of the stream
   */
  done: boolean
}
/**
 * An image that new boxes of the region use without a download
 */
export interface Image {
  /**
   * the name under which boxes use the image
   */
  reference: string
  region: RegionName
  /**
   * sha256:… of the content in its registry; null: the image comes from no registry
   */
  digest: string | null
  sizeBytes: number
  /**
   * when the image was built
   */
  createdAt: Timestamp | null
}
/**
 * A region, and what its boxes can do
 */
export interface Region {
  region: RegionName
  /**
   * of boxes that are created without a region
   */
  isDefault: boolean
  /**
   * local, docker, podman or incus
   */
  provider: string
  /**
   * whether boxes have an image, with their own root file system
   */
  images: boolean
  /**
   * whether the user of a box is root, and can install packages
   */
  root: boolean
  /**
   * whether the processes of a suspended box keep their memory; null: not known yet
   */
  freeze: boolean | null
  /**
   * live: processes continue when the tier changes, where the machine allows it; restart: they are terminated
   */
  resize: 'live' | 'restart'
  /**
   * whether snapshots, templates and forks are possible
   */
  snapshots: boolean
  /**
   * of a box that is created without one; null: the region has no images
   */
  defaultImage: string | null
  /**
   * how boxes are isolated, in words
   */
  description: string
}
export interface BoxRepo {
  repo: string
  path: string
  ref: string | null
  state: 'pending' | 'cloning' | 'ready' | 'failed'
  /**
   * the checked-out commit after the last clone or update
   */
  commit: string | null
  error: string | null
  updatedAt: Timestamp
}
/**
 * An environment with the configuration of its latest version
 */
export interface Environment {
  /**
   * starts with env_
   */
  id: string
  name: string
  description: string | null
  /**
   * new boxes that name no environment get this one
   */
  isDefault: boolean
  /**
   * 1, and one more with each change of the configuration
   */
  latestVersionNo: number
  vars: {
    name: string
    value: string
  }[]
  /**
   * without their contents
   */
  files: {
    path: string
    mode: string
    /**
     * bytes
     */
    size: number
    updatedAt: Timestamp
  }[]
  repos: EnvironmentRepoOutput[]
  /**
   * the image of new boxes that name none; null: the default image of their region. A change does not concern boxes that exist
   */
  image: string | null
  toggles: EnvironmentToggles
  /**
   * boxes that are not deleted and use any version
   */
  boxCount: number
  createdAt: Timestamp
  updatedAt: Timestamp
}
export interface EnvironmentRepoOutput {
  repo: string
  /**
   * the directory of the clone; default: `~/` and the last part of the URL
   */
  path?: string
  /**
   * a branch, a tag or a commit; default: the default branch
   */
  ref?: string
  /**
   * the name of a secret of the workspace, for a private repository: git sends its placeholder, so that no token is on the box
   */
  secret?: string
}
/**
 * git, cloud, codingAgents: credential channels. With cloud, the boxes get the AWS roles of the workspace. With one of them, each new box gets the secrets of the workspace that have a well-known name of the channel, such as GITHUB_TOKEN, HCLOUD_TOKEN or ANTHROPIC_API_KEY, mounted under this name, as far as their grants allow it
 */
export interface EnvironmentToggles {
  /**
   * safe for third parties: boxes of the environment are restricted. They get no secrets, no secret files, no cloud tokens and no links that need no membership, and the three channels have no effect
   */
  restricted: boolean
  git: boolean
  cloud: boolean
  codingAgents: boolean
}
export interface UpgradedEnvironment {
  upgraded: {
    boxId: string
    hostname: string
    /**
     * the version before the upgrade
     */
    versionNo: number
  }[]
  skipped: {
    boxId: string
    hostname: string
    versionNo: number
    /**
     * up_to_date: the box uses the latest version; box_failed: the box could not be provisioned; delete it; terminating: the box is being deleted
     */
    reason: 'up_to_date' | 'box_failed' | 'terminating'
  }[]
  latestVersionNo: number
}
export interface Secret {
  /**
   * starts with sec_
   */
  id: string
  name: string
  description: string | null
  hosts: string[]
  /**
   * where the value is used in a request
   */
  in: ('header' | 'query' | 'path' | 'body')[]
  /**
   * what boxes have instead of the value; it never changes
   */
  placeholder: string
  mountCount: number
  /**
   * workspace: the secret has no grants, and every box that is not restricted may use it; granted: only the boxes that a grant covers, which are none without grants
   */
  scope: 'workspace' | 'granted'
  grants: SecretGrant[]
  createdAt: Timestamp
  updatedAt: Timestamp
  lastRotatedAt: Timestamp | null
}
export interface SecretGrant {
  /**
   * starts with sgr_
   */
  id: string
  boxId: string | null
  /**
   * the name of the box when it was granted
   */
  hostname: string | null
  /**
   * boxes of this owner may use the secret
   */
  userId: string | null
  email: string | null
  createdAt: Timestamp
}
export interface SecretUse {
  boxId: string
  /**
   * null: the box has been deleted
   */
  hostname: string | null
  host: string
  firstAt: Timestamp
  lastAt: Timestamp
  /**
   * requests; up to a second late
   */
  count: number
}
/**
 * A person who may use the workspace
 */
export interface Member {
  /**
   * the id of the user, such as usr_…
   */
  id: string
  /**
   * lowercase; null: not set, by the first owner of the coordinator
   */
  email: string | null
  name: string
  role: Role
  /**
   * invited: the person has not signed in to the workspace yet
   */
  status: 'active' | 'invited'
  createdAt: Timestamp
  /**
   * the first sign-in; null: invited
   */
  joinedAt: Timestamp | null
  /**
   * the last request with a session or API key of the member, up to an hour late; null: none is known
   */
  lastActiveAt: Timestamp | null
}
export interface TeamBox {
  id: string
  hostname: string
  tier: Tier
  desiredState: 'running' | 'suspended' | 'terminated'
  observedState: ObservedState
  ownerUserId: string
  /**
   * also of an owner who has left the workspace
   */
  ownerName: string | null
  ownerEmail: string | null
  /**
   * null unless the box is running
   */
  idleForSec: number | null
  /**
   * as in Vitals; null unless the box is running
   */
  cpuPct: number | null
  /**
   * as in Vitals; null unless the box is running
   */
  memPct: number | null
  lastHeartbeatAt: Timestamp | null
  sessions: OpenSessions
  /**
   * when the box last accepted a prompt. null: it has accepted none, or only ones before the coordinator recorded this time
   */
  lastPromptAt: Timestamp | null
  /**
   * when the newest command of the command history was requested; null: the history has no command of the box
   */
  lastExecAt: Timestamp | null
  /**
   * micro-dollars; 0 while billing is off
   */
  spendTodayMicros: number
  /**
   * micro-dollars; 0 while billing is off
   */
  spendCycleMicros: number
}
export interface TeamMember {
  userId: string
  name: string
  email: string | null
  role: 'owner' | 'member' | 'contractor'
  /**
   * live boxes that the member owns
   */
  boxes: number
  sessions: OpenSessions
  /**
   * micro-dollars; 0 while billing is off
   */
  spendCycleMicros: number
  /**
   * as in Member
   */
  lastActiveAt: Timestamp | null
}
export interface Billing {
  /**
   * micro-dollars: 1000000 is one dollar
   */
  balanceMicros: number
  /**
   * micro-dollars: 1000000 is one dollar
   */
  burnMicrosPerHour: number
  /**
   * null while nothing is charged
   */
  runwayHours: number | null
  /**
   * 0: billing is off
   */
  warnBelowHours: number
  planAmountUsd: number
  overage: boolean
  /**
   * what the workspace may owe while its boxes run: as much as its saved card has paid, up to a maximum of the operator. 0: no card is saved, or it has not paid for too long
   */
  overdraftMicros: number
  collecting: boolean
  paymentFailed: boolean
  paymentGraceUntil: Timestamp | null
  trial: boolean
  billingUrl: string | null
  /**
   * why an operator has paused the workspace (workspace_held); null: it is not paused
   */
  hold: ('mining' | 'cpu') | null
  /**
   * off: nothing has a price. manual: an operator of the coordinator grants credit. stripe: owners also pay by card
   */
  provider: 'off' | 'manual' | 'stripe'
  hasCard: boolean
  /**
   * what a new workspace gets, if it is the first one of its owner
   */
  freeCreditMicros: number
  /**
   * null: billing is off
   */
  plan: Plan | null
  /**
   * null: billing is off
   */
  prices: Prices | null
}
/**
 * What the workspace may have.
 */
export interface Plan {
  /**
   * free: the workspace has had no payment
   */
  name: 'free' | 'paid'
  boxes: number
  snapshots: number
  secrets: number
  /**
   * open terminals
   */
  terminals: number
  tiers: Tier[]
}
/**
 * The prices at this moment.
 */
export interface Prices {
  tiers: {
    tier: Tier
    /**
     * a running box, with its disk
     */
    runningMicrosPerHour: number
    /**
     * the disk of a box that does not run
     */
    diskMicrosPerHour: number
  }[]
  /**
   * a GB of snapshots
   */
  snapshotGbMicrosPerHour: number
}
/**
 * An entry of the ledger. It never changes.
 */
export interface BillingEntry {
  /**
   * what has caused the entry; unique in the workspace
   */
  id: string
  kind: 'usage' | 'free_credit' | 'credit' | 'top_up' | 'adjustment' | 'refund'
  /**
   * negative: it has reduced the balance
   */
  amountMicros: number
  /**
   * of usage
   */
  boxId: string | null
  /**
   * of usage: when it began
   */
  since: Timestamp | null
  /**
   * of usage: when it ended
   */
  until: Timestamp | null
  /**
   * of the usage of a snapshot: the id of the snapshot
   */
  note: string | null
  at: Timestamp
}
/**
 * What a box and its snapshots have cost.
 */
export interface BoxUsage {
  boxId: string
  /**
   * null: the box was deleted long ago
   */
  hostname: string | null
  /**
   * micro-dollars: 1000000 is one dollar
   */
  micros: number
  /**
   * seconds in which boxes were running
   */
  computeSeconds: number
}
/**
 * What boxes have cost while the member owned them.
 */
export interface MemberUsage {
  userId: string
  /**
   * also of a user who has left the workspace
   */
  name: string | null
  email: string | null
  /**
   * micro-dollars: 1000000 is one dollar
   */
  micros: number
  /**
   * seconds in which boxes were running
   */
  computeSeconds: number
}
/**
 * What the boxes have cost on a day.
 */
export interface DayUsage {
  /**
   * in UTC, such as 2030-01-31
   */
  day: string
  /**
   * micro-dollars: 1000000 is one dollar
   */
  micros: number
  /**
   * seconds in which boxes were running
   */
  computeSeconds: number
  /**
   * of the 7 highest of the month
   */
  parts?: {
    id: string
    /**
     * micro-dollars: 1000000 is one dollar
     */
    micros: number
  }[]
}
export interface Workspace {
  /**
   * the id of the workspace, such as ws_…
   */
  id: string
  name: string
  createdAt: Timestamp
  /**
   * true: the coordinator stores no command, working directory or output in the command history, no command lines in process snapshots, and no details of client reports in the audit log
   */
  zeroDataRetention: boolean
  /**
   * whether POST /workspace/close is possible. false: the first workspace of the coordinator, whose owners operate it
   */
  closable: boolean
  /**
   * when the closing of the workspace was requested; null: the workspace is open
   */
  closingAt: Timestamp | null
  /**
   * when everything of the workspace is deleted. Until then an owner can reopen it. null: the workspace is open
   */
  purgeAfter: Timestamp | null
}
export interface WorkspacePolicy {
  policy: Policy
  /**
   * the id of the user who made the last change; null: there was none
   */
  updatedBy: string | null
  updatedAt: Timestamp | null
  /**
   * why no quiet hours start; null: nothing prevents them
   */
  quietHoursProblem: string | null
}
/**
 * null: the policy is off. memberSpendCapUsd, memberBoxLimit, memberMaxTier and autoPauseFloorMin limit members and contractors. They do not limit owners, nor API keys without a user.
 */
export interface Policy {
  memberSpendCapUsd: MemberSpendCap | null
  memberBoxLimit: MemberBoxLimit | null
  memberMaxTier: Tier | null
  autoPauseFloorMin: AutoPauseFloor | null
  quietHours: QuietHoursOutput | null
  /**
   * how long events of the audit log are kept, in days; default 90
   */
  auditRetentionDays: number
  allowedImages: AllowedImagesOutput | null
  /**
   * who may enroll machines as boxes: owners, or members too; default member
   */
  machineEnrollment: 'owner' | 'member'
  /**
   * whether only owners may create links to shared ports for anyone; default false. Existing links stay
   */
  anyoneLinksOwnerOnly: boolean
  /**
   * whether ports may be shared by links that need no membership; default true. false also turns off existing links
   */
  shareLinks: boolean
}
/**
 * Hours of the week. When a period starts, all running boxes are suspended once, apart from enrolled machines and boxes with quietHoursExempt; requests in progress are interrupted. A box that is created or woken afterwards stays awake until the next period starts. Overlapping and adjacent periods are one. A start that daylight saving time skips is at the next minute that exists; a repeated one happens once. A change applies from the next start
 */
export interface QuietHoursOutput {
  /**
   * HH:MM, 24 hours, in the time zone
   */
  start: string
  /**
   * HH:MM; differs from start. Before start: the period ends on the next day.
   */
  end: string
  /**
   * the days on which the period starts
   *
   * @maxItems 7
   */
  days: ('mon' | 'tue' | 'wed' | 'thu' | 'fri' | 'sat' | 'sun')[]
  /**
   * the days that are quiet from midnight to midnight
   *
   * @maxItems 7
   */
  allDayDays: ('mon' | 'tue' | 'wed' | 'thu' | 'fri' | 'sat' | 'sun')[]
  /**
   * IANA name, such as Europe/Berlin
   */
  timezone: string
}
export interface AuditChainEvent {
  /**
   * ascending within the workspace, from 1 and without gaps
   */
  id: number
  at: Timestamp
  kind: string
  /**
   * server: recorded by the coordinator; client: reported with POST /audit
   */
  origin: 'server' | 'client'
  /**
   * cli: an API key that `box login` has created; system: the coordinator itself
   */
  actorKind: 'user' | 'cli' | 'ticket' | 'mobile' | 'system'
  actorUserId: string | null
  /**
   * the id of the API key, session or ticket
   */
  actorTokenId: string | null
  boxId: string | null
  /**
   * SHA-256 (hex) of the event and the hash of the event before it; see GET /audit/chain
   */
  hash: string
  /**
   * the detail as JSON text, exactly as it is hashed; null: erased, like salt
   */
  detail: string | null
  salt: string | null
  /**
   * SHA-256 (hex) of salt, a newline and detail
   */
  detailHash: string
}
/**
 * The HTTPS endpoint that receives the audit events
 */
export interface AuditSink {
  url: string
  /**
   * the id of the last delivered event; 0: none
   */
  deliveredThrough: number
  /**
   * events that are not delivered yet
   */
  pending: number
  lastDeliveredAt: Timestamp | null
  /**
   * why the last delivery failed; null: it succeeded, or there was none
   */
  lastError: string | null
  /**
   * failed deliveries since the last successful one
   */
  attempt: number
  /**
   * when a failed delivery is sent again; null: it has not failed
   */
  nextAttemptAt: Timestamp | null
  /**
   * the id of the user who configured it
   */
  updatedBy: string | null
  updatedAt: Timestamp
}
export interface AwsRole {
  /**
   * awr_…
   */
  id: string
  roleArn: string
  /**
   * the profile of ~/.aws/config under which boxes use the role
   */
  profile: string
  /**
   * when the workspace could assume the role; null: the last verification failed
   */
  verifiedAt: Timestamp | null
  /**
   * the identity that AWS has returned
   */
  verifiedArn: string | null
  /**
   * why the last verification failed
   */
  verifyError: string | null
  createdAt: Timestamp
  /**
   * user:<id> or key:<id>
   */
  createdBy: string
}
export interface LedgerDifference {
  workspaceId: string
  /**
   * balance, or total and the month, the box and the user
   */
  what: string
  /**
   * micro-dollars: 1000000 is one dollar
   */
  storedMicros: number
  /**
   * by the entries of the ledger
   */
  computedMicros: number
}
export interface OperatorWorkspace {
  id: string
  name: string
  /**
   * of the first owner who has joined
   */
  ownerEmail: string | null
  createdAt: Timestamp
  closingAt: Timestamp | null
  /**
   * micro-dollars: 1000000 is one dollar
   */
  balanceMicros: number
  /**
   * micro-dollars: 1000000 is one dollar
   */
  burnMicrosPerHour: number
  /**
   * the workspace has had free credit only
   */
  trial: boolean
  /**
   * why the workspace is paused; null: it is not
   */
  hold: ('mining' | 'cpu') | null
  /**
   * when a box on free credit had used its full CPU for hours; no effect by itself
   */
  flaggedAt: Timestamp | null
}
export interface ExecResult {
  ok: true
  type: 'exec.result'
  /**
   * null when a signal terminated the command
   */
  exitCode: number | null
  /**
   * the signal that terminated the command: name without SIG, such as TERM, or a real-time signal number; else null
   */
  signal: string | null
  /**
   * the last 1 MiB as UTF-8; invalid bytes become U+FFFD
   */
  stdout: string
  stderr: string
  stdoutTruncated: boolean
  stderrTruncated: boolean
  /**
   * true only when the time limit terminated the command
   */
  timedOut: boolean
  startedAt: Timestamp
  finishedAt: Timestamp
  /**
   * as given in the request; ~ when the request has none
   */
  cwd: string
  /**
   * id of the record in the command history
   */
  commandId?: string
}
export interface ExecStarted {
  ok: true
  type: 'exec.started'
  processId: string
  pid: number
  /**
   * as given in the request; ~ when the request has none
   */
  cwd: string
  startedAt: Timestamp
  /**
   * path of the file with the standard output, for GET /download
   */
  logPath: string
  /**
   * equals processId; present when the command is recorded in the history
   */
  commandId?: string
}
/**
 * Error response of the edge. Codes are stable.
 */
export interface EdgeError {
  ok: false
  error: {
    code: string
    message: string
    [k: string]: unknown
  }
}
/**
 * Newest first. Each command is truncated to 2048 characters; GET /exec/{processId} returns the whole command.
 */
export interface ExecList {
  ok: true
  type: 'exec.list'
  /**
   * @maxItems 1000
   */
  processes: {
    processId: string
    pid: number
    running: boolean
    /**
     * true when the box or the runner stopped: the exit status is unknown
     */
    lost: boolean
    exitCode: number | null
    signal: string | null
    /**
     * true only when the time limit terminated the command
     */
    timedOut: boolean
    /**
     * whether the command was started with attached
     */
    attached: boolean
    startedAt: Timestamp
    command: string
  }[]
}
export interface ExecStatus {
  processId: string
  pid: number
  running: boolean
  /**
   * true when the box or the runner stopped: the exit status is unknown
   */
  lost: boolean
  exitCode: number | null
  signal: string | null
  /**
   * true only when the time limit terminated the command
   */
  timedOut: boolean
  /**
   * whether the command was started with attached
   */
  attached: boolean
  startedAt: Timestamp
  command: string
  ok: true
  type: 'exec.status'
  finishedAt: Timestamp | null
  cwd: string
  /**
   * the last `tail` bytes, as UTF-8
   */
  stdout: string
  stderr: string
  /**
   * whether the stream has output before the tail
   */
  stdoutTruncated: boolean
  stderrTruncated: boolean
}
export interface ExecKilled {
  ok: true
  type: 'exec.killed'
  processId: string
  wasRunning: boolean
  /**
   * the strongest signal that was needed; null when the process had already exited
   */
  signal: ('TERM' | 'KILL') | null
}
export interface LiveProcesses {
  ok: true
  type: 'process.list'
  at: Timestamp
  /**
   * CPU usage of all processes of the box, also with processId, in percent of cpuCount
   */
  cpuPct: number | null
  cpuCount: number | null
  /**
   * memory of the box, measured as mem_used_bytes of the metrics
   */
  memUsedBytes: number | null
  memTotalBytes: number | null
  /**
   * all processes of the box, or of the command
   */
  total: number
  /**
   * by CPU usage, descending
   *
   * @maxItems 1000
   */
  processes: LiveProcess[]
}
export interface LiveProcess {
  pid: number
  ppid: number
  user: string
  name: string
  command: string
  /**
   * the state letter of ps, such as R, S, D or Z
   */
  state: string
  threads: number
  /**
   * percent of one CPU, over the last 0.5 to 5 seconds
   */
  cpuPct: number
  /**
   * resident memory
   */
  memBytes: number
  startedAt: Timestamp | null
  /**
   * of the command that started it or its parent
   */
  processId: string | null
  /**
   * init and agent run the box: a signal to them interrupts it; null: a process of its users
   */
  role?: ('init' | 'agent') | null
}
export interface TerminalStarted {
  ok: true
  type: 'terminal.started'
  session: string
  pid: number
  /**
   * null: the login shell; at most 2048 characters
   */
  command: string | null
  cols: number
  rows: number
  /**
   * attached connections
   */
  clients: number
  startedAt: Timestamp
  lastActiveAt: Timestamp
  /**
   * id of the record in the command history
   */
  commandId?: string
}
/**
 * Running sessions, newest first.
 */
export interface TerminalList {
  ok: true
  type: 'terminal.list'
  /**
   * @maxItems 64
   */
  sessions: {
    session: string
    pid: number
    /**
     * null: the login shell; at most 2048 characters
     */
    command: string | null
    cols: number
    rows: number
    /**
     * attached connections
     */
    clients: number
    startedAt: Timestamp
    lastActiveAt: Timestamp
  }[]
}
export interface TerminalKilled {
  ok: true
  type: 'terminal.killed'
  session: string
  signal: ('HUP' | 'TERM' | 'KILL') | null
}
export interface PromptStarted {
  ok: true
  type: 'prompt.started'
  run: Run
}
export interface Run {
  id: string
  conversationId: string
  provider: 'claude' | 'codex' | 'opencode' | 'pi'
  /**
   * as requested; null: the default of the coding agent
   */
  model: string | null
  reasoningEffort: ('low' | 'medium' | 'high') | null
  auto: boolean
  /**
   * interrupted: by a request or a suspend. Otherwise the last final event decides, and without one the exit code
   */
  status: 'running' | 'done' | 'failed' | 'interrupted'
  /**
   * why the run failed or was interrupted; null while it runs and when it is done
   */
  error: string | null
  /**
   * null while it runs, and after a signal
   */
  exitCode: number | null
  pid: number | null
  /**
   * as given for the conversation; ~ by default
   */
  cwd: string
  startedAt: Timestamp
  finishedAt: Timestamp | null
  /**
   * the session of the coding agent; null until its output names it
   */
  sessionId: string | null
  /**
   * the session that the run continues
   */
  resumedFrom: string | null
  /**
   * the previous run of the conversation
   */
  parent: string | null
  eventCount: number
  /**
   * the first 2048 characters; GET /prompts/{runId} returns the whole prompt
   */
  prompt: string
}
export interface PromptQueued {
  ok: true
  type: 'prompt.queued'
  conversationId: string
  queued: QueuedPrompt
  /**
   * the run that the prompt waits for
   */
  active: Run | null
}
export interface QueuedPrompt {
  /**
   * the id of the run, once it has started
   */
  id: string
  conversationId: string
  provider: 'claude' | 'codex' | 'opencode' | 'pi'
  model: string | null
  /**
   * in the queue of the box
   */
  position: number
  queuedAt: Timestamp
  prompt: string
}
export interface PromptList {
  ok: true
  type: 'prompt.list'
  /**
   * newest first
   *
   * @maxItems 50
   */
  runs: Run[]
  /**
   * the newest run in progress
   */
  active: Run | null
  /**
   * in the order in which they will start
   *
   * @maxItems 1000
   */
  queued: QueuedPrompt[]
}
export interface PromptStatus {
  ok: true
  type: 'prompt.status'
  run: Run
  /**
   * the last 4 KiB, as UTF-8
   */
  stderr: string
  stderrTruncated: boolean
  /**
   * path of the file with the unchanged output of the coding agent, for GET /download
   */
  logPath: string
}
export interface PromptEvents {
  ok: true
  type: 'prompt.events'
  /**
   * null: the prompt is in the queue
   */
  run: Run | null
  /**
   * @maxItems 1000
   */
  events: PromptEvent[]
  /**
   * pass as `after` to get the following page
   */
  next: number
  /**
   * the run has ended, and no event follows the page
   */
  finished: boolean
}
export interface PromptEvent {
  /**
   * 1, 2, 3, … of the run
   */
  seq: number
  at: Timestamp
  /**
   * session, text, reasoning, tool, tool_result, usage, notice, error, done
   */
  type: string
  text: string | null
  /**
   * set for tool and tool_result; input is null where the coding agent does not repeat it
   */
  tool: {
    name: string
    input: unknown
  } | null
  /**
   * the line of the coding agent, unchanged, on the first event of the line; null on its further events
   */
  raw: unknown
}
export interface PromptInterrupted {
  ok: true
  type: 'prompt.interrupted'
  id: string
  wasRunning: boolean
  signal: SentSignal
  /**
   * the prompt was in the queue and has been removed
   */
  dequeued: boolean
}
export interface ConversationList {
  ok: true
  type: 'prompt.conversations'
  /**
   * most recently active first
   *
   * @maxItems 50
   */
  conversations: Conversation[]
  /**
   * runs in progress on the box
   */
  running: number
  /**
   * the most runs that may be in progress
   */
  limit: number
}
export interface Conversation {
  id: string
  provider: 'claude' | 'codex' | 'opencode' | 'pi'
  model: string | null
  cwd: string
  /**
   * runs, also those that are deleted
   */
  prompts: number
  /**
   * prompts in the queue
   */
  queued: number
  running: boolean
  lastRunId: string | null
  lastStatus: ('running' | 'done' | 'failed' | 'interrupted') | null
  sessionId: string | null
  lastPrompt: string
  createdAt: Timestamp
  updatedAt: Timestamp
}
export interface PromptsInterrupted {
  ok: true
  type: 'prompt.interrupted'
  /**
   * of the first run
   */
  id: string | null
  wasRunning: boolean
  signal: SentSignal
  /**
   * @maxItems 256
   */
  interrupted: {
    id: string
    conversationId: string
    signal: SentSignal
  }[]
  /**
   * prompts that were removed from the queue
   *
   * @maxItems 1000
   */
  dequeued: string[]
}
export interface FileRead {
  ok: true
  type: 'file.read'
  /**
   * the real path, symbolic links resolved
   */
  path: string
  /**
   * base64 when the bytes are not valid UTF-8
   */
  encoding: 'utf8' | 'base64'
  size: number
  /**
   * octal, such as 0644
   */
  mode: string
  content: string
}
export interface FileWritten {
  ok: true
  type: 'file.written'
  path: string
  size: number
}
export interface FileRemoved {
  ok: true
  type: 'file.removed'
  path: string
}
export interface FileList {
  ok: true
  type: 'file.list'
  /**
   * the real path of the directory
   */
  path: string
  /**
   * in the order of the bytes of their names, without . and ..
   *
   * @maxItems 1000
   */
  entries: FileEntry[]
  /**
   * null: this is the last page
   */
  nextCursor: string | null
}
export interface FileEntry {
  /**
   * may have control characters. Bytes that are not UTF-8 are replaced by U+FFFD
   */
  name: string
  /**
   * the bytes of the name, when they are not UTF-8
   */
  nameBase64?: string
  type: 'file' | 'directory' | 'symlink' | 'fifo' | 'socket' | 'device'
  /**
   * in bytes
   */
  size: number
  /**
   * octal, such as 0644
   */
  mode: string
  uid: number
  gid: number
  /**
   * the name of the user, or its number
   */
  owner: string
  /**
   * the name of the group, or its number
   */
  group: string
  /**
   * the modification time; null when its year is not between 1970 and 9999
   */
  mtime: Timestamp | null
  /**
   * of a symbolic link: the path that it stores
   */
  target?: string
  /**
   * of a symbolic link: the type of what it leads to; null when that cannot be found
   */
  targetType?: ('file' | 'directory' | 'symlink' | 'fifo' | 'socket' | 'device') | null
}
export interface DirectoryCreated {
  ok: true
  type: 'directory.created'
  /**
   * the real path
   */
  path: string
  /**
   * false: the directory existed
   */
  created: boolean
}
export interface FileMoved {
  ok: true
  type: 'file.moved'
  /**
   * the real path before the move
   */
  from: string
  /**
   * the real path
   */
  path: string
}
export interface FileStat {
  ok: true
  type: 'file.stat'
  /**
   * the real path of the directory of the entry, and its name
   */
  path: string
  entry: FileEntry
}
export interface FileUploaded {
  ok: true
  type: 'file.uploaded'
  path: string
  size: number
}
export interface DesktopStatus {
  ok: true
  type: 'desktop.status'
  programs: DesktopProgram[]
  /**
   * null: no desktop is running
   */
  session: DesktopSession | null
  /**
   * per mode, the command for root that installs what is missing on Debian and Ubuntu; null: nothing
   */
  install: {
    desktop: string | null
    browser: string | null
  }
  /**
   * where the command is to be run: coordinator, its machine, whose programs the box uses; box, in the box
   */
  installOn: 'coordinator' | 'box'
}
export interface DesktopProgram {
  role: 'display' | 'viewer' | 'windowManager' | 'terminal' | 'browser'
  /**
   * name of the installed program; null: none is installed
   */
  program: string | null
  /**
   * the Debian package that has one
   */
  package: string
  /**
   * modes that do not start without it; empty: optional
   */
  requiredFor: ('desktop' | 'browser')[]
}
export interface DesktopSession {
  /**
   * value of DISPLAY for commands on the box
   */
  display: string
  /**
   * value of XAUTHORITY for commands on the box
   */
  authority: string
  /**
   * running modes
   *
   * @maxItems 2
   */
  modes: ('desktop' | 'browser')[]
  width: number
  height: number
  dpi: number
  /**
   * connected viewers
   */
  viewers: number
  startedAt: Timestamp
}
export interface DesktopStopped {
  ok: true
  type: 'desktop.stopped'
  mode: 'desktop' | 'browser'
  wasRunning: boolean
}
export interface DesktopStarted {
  ok: true
  type: 'desktop.started'
  mode: 'desktop' | 'browser'
  /**
   * the mode was running before the request
   */
  alreadyRunning: boolean
  session: DesktopSession
}
export interface DesktopStopResponse {
  ok: true
  /**
   * the name of the box
   */
  box: string
  mode: 'desktop' | 'browser'
}
/**
 * Error response of POST /desktop/stop. Codes are stable.
 */
export interface BareError {
  error: string
  [k: string]: unknown
}
export interface AccountGetQuery {
  /**
   * only the live box with this name, and the boxes with this id or whose id starts with it. The start of an id has at least 8 characters
   */
  box?: string
}
export interface AgentAccountsSendCodeResponse {
  /**
   * the id of the emailed code, such as sic_…
   */
  codeId: string
  codeExpiresAt: Timestamp
}
export interface AgentAccountsVerifyResponse {
  verified: true
}
export interface AgentsListResponse {
  rollout: AgentRollout
  /**
   * newest box first
   */
  agents: Agent[]
}
export interface AgentsUpdateRolloutResponse {
  rollout: AgentRollout
}
export interface AuditListResponse {
  events: AuditEvent[]
  /**
   * Value of `before` for the next page; null on the last page. A page of several filters may have fewer events than limit, or none, and still not be the last one.
   */
  nextBefore: number | null
}
export interface AuditListQuery {
  since?: Instant
  until?: Instant
  /**
   * One of the kinds above, or several separated by commas
   */
  kind?: string
  /**
   * box id
   */
  box?: string
  /**
   * user id
   */
  actor?: string
  origin?: 'server' | 'client'
  /**
   * nextBefore of the previous page: only events with smaller ids
   */
  before?: number
  /**
   * default: 100; with format=csv 50000
   */
  limit?: number
  /**
   * default: json
   */
  format?: 'json' | 'csv'
}
export interface AuditListChainResponse {
  workspaceId: string
  /**
   * The event before the oldest one that is kept: the last one that retention has deleted. id 0 and 64 zeros when none has been.
   */
  start: {
    id: number
    hash: string
  }
  /**
   * The newest event. Like start, with at null, when there is none.
   */
  head: {
    id: number
    hash: string
    at: Timestamp | null
  }
  /**
   * ascending
   */
  events: AuditChainEvent[]
  /**
   * value of `after` for the next page; null on the last page
   */
  next: number | null
}
export interface AuditListChainQuery {
  /**
   * only events with greater ids: next of the previous page; default: 0
   */
  after?: number
  /**
   * default: 1000
   */
  limit?: number
}
export interface AuditReportRequest {
  kind: 'exec' | 'file.upload' | 'file.download' | 'prompt' | 'desktop.start'
  /**
   * id of a box that is not deleted
   */
  boxId: string
  /**
   * At most 16 fields with names of at most 40 characters, and strings of at most 512 characters. Never include secrets. Not stored under zero data retention.
   */
  detail?: {
    [k: string]: string | number | boolean | null
  }
}
export interface AuditReportResponse {
  /**
   * ascending within the workspace, from 1 and without gaps
   */
  id: number
}
export interface AuditSinkGetResponse {
  /**
   * null: none is configured
   */
  sink: AuditSink | null
}
export interface AuditSinkSetResponse {
  sink: AuditSink
  /**
   * signs the deliveries: `whsec_` and base64. Returned when the url is new or changed, and never again; otherwise null.
   */
  secret: string | null
}
export interface AwsRolesCancelLinkResponse {
  cancelled: true
}
export interface AwsRolesCompleteLinkRequest {
  id: string
  token: string
  roleArn: string
}
export interface AwsRolesCompleteLinkResponse {
  /**
   * false: AWS does not let the workspace assume the role yet
   */
  connected: boolean
  message: string | null
}
export interface AwsRolesCreateRequest {
  roleArn: string
  /**
   * default: `default`, or the name of the role when another role has this profile
   */
  profile?: string
}
export interface AwsRolesCreateResponse {
  role: AwsRole
}
export interface AwsRolesCreateLinkRequest {
  profile?: string
}
export interface AwsRolesCreateLinkResponse {
  /**
   * awc_…
   */
  id: string
  /**
   * opens a stack in the console of AWS; contains the secret of the link
   */
  url: string
  expiresAt: Timestamp
}
export interface AwsRolesDeleteResponse {
  revoked: true
}
export interface AwsRolesListResponse {
  /**
   * whether boxes of this deployment can use AWS roles
   */
  enabled: boolean
  /**
   * what the operator has to do when enabled is false
   */
  missing: string[]
  /**
   * whether POST /aws-connect creates links
   */
  quickConnect: boolean
  issuer: string | null
  audience: string
  workspaceId: string
  /**
   * the subjects of the tokens of this workspace, for the trust policy of a role
   */
  subjectPattern: string
  /**
   * the file of the token on boxes: ~/.boxwood/aws/token
   */
  tokenPath: string
  /**
   * the most roles of a workspace
   */
  limit: number
  /**
   * oldest first
   */
  roles: AwsRole[]
}
export interface AwsRolesVerifyResponse {
  role: AwsRole
}
export interface BillingListEntriesResponse {
  /**
   * newest first
   */
  entries: BillingEntry[]
  nextBefore: NextBefore
}
export interface BillingListEntriesQuery {
  /**
   * default: 50
   */
  limit?: number
  /**
   * nextBefore of the previous page
   */
  before?: string
}
export interface BillingReceiveStripeEventResponse {
  received: true
}
export interface BillingStartCheckoutResponse {
  /**
   * the page at which the owner pays
   */
  url: string
}
export interface BoxesCreateResponse {
  box: Box
}
export interface BoxesCreateTemplateResponse {
  snapshot: Snapshot
}
export interface BoxesDeleteResponse {
  box: Box
  operation: Operation
}
export interface BoxesForkResponse {
  box: Box
  snapshot: Snapshot
}
export interface BoxesGetMetricsQuery {
  from?: Instant
  to?: Instant
}
export interface BoxesGetProcessesAtQuery {
  t: Instant
}
export interface BoxesGiveResponse {
  box: Box
}
export interface BoxesListResponse {
  boxes: Box[]
  nextBefore?: NextBefore
}
export interface BoxesListQuery {
  /**
   * 1: omit terminated boxes
   */
  live?: boolean
  /**
   * only the live box with this name, and the boxes with this id or whose id starts with it. The start of an id has at least 8 characters
   */
  box?: string
  /**
   * 1, with box and without live: only deleted boxes; of several with the name, the newest
   */
  deleted?: boolean
  /**
   * only the boxes with this label: its key, or key=value. Can be repeated: a box must have all of them
   *
   * @maxItems 32
   */
  label?: string[]
  /**
   * default: all boxes; with before: 200
   */
  limit?: number
  /**
   * nextBefore of the previous page
   */
  before?: string
}
export interface BoxesListCpuResponse {
  from: Timestamp
  res: 300
  /**
   * by box id: cpu_pct of the last hour, as in Metrics, one value per `res` seconds; without boxes that the caller may not see
   */
  boxes: {
    [k: string]: (number | null)[]
  }
}
export interface BoxesListCpuQuery {
  /**
   * up to 100 ids, separated by commas
   */
  boxes: string
}
export interface BoxesMoveResponse {
  box: Box
}
export interface BoxesResizeResponse {
  box: Box
}
export interface BoxesSuspendResponse {
  box: Box
}
export interface BoxesSuspendQuery {
  /**
   * 1: terminate the processes, also of a box that is suspended and frozen.
   */
  stop?: boolean
}
export interface BoxesUpdateResponse {
  box: Box
}
export interface BoxesWakeResponse {
  box: Box
}
export interface CommandsDeleteAllResponse {
  deleted: number
}
export interface CommandsGetResponse {
  command: Command
}
export interface CommandsGetOutputQuery {
  /**
   * default: stdout
   */
  stream?: 'stdout' | 'stderr'
  /**
   * in bytes; default: 0
   */
  offset?: number
  /**
   * in bytes; default: 1048576
   */
  limit?: number
  /**
   * default: utf8
   */
  encoding?: 'utf8' | 'base64'
}
export interface CommandsListResponse {
  commands: Command[]
  nextBefore: NextBefore
}
export interface CommandsListQuery {
  /**
   * default: 50
   */
  limit?: number
  /**
   * nextBefore of the previous page
   */
  before?: string
  mode?: 'sync' | 'detached'
  status?: 'running' | 'exited' | 'killed' | 'timed_out' | 'failed' | 'lost'
  to?: Instant
}
export interface DesktopDeleteQuery {
  /**
   * default desktop
   */
  mode?: 'desktop' | 'browser'
}
export interface EnvironmentsCreateResponse {
  environment: Environment
}
export interface EnvironmentsListResponse {
  environments: Environment[]
}
export interface EnvironmentsMakeDefaultResponse {
  environment: Environment
}
export interface EnvironmentsRemoveFileQuery {
  path: string
}
export interface EnvironmentsRemoveRepoQuery {
  repo: string
}
export interface EnvironmentsSetFileResponse {
  environment: Environment
}
export interface EnvironmentsSetRepoResponse {
  environment: Environment
}
export interface EnvironmentsSetTogglesResponse {
  environment: Environment
}
export interface EnvironmentsSetVariableResponse {
  environment: Environment
}
export interface EnvironmentsUpdateResponse {
  environment: Environment
}
export interface FederationGetDocumentsResponse {
  issuer: string
  /**
   * served at /.well-known/openid-configuration below the issuer
   */
  openidConfiguration: {
    [k: string]: unknown
  }
  /**
   * served at /jwks below the issuer
   */
  jwks: {
    keys: {
      [k: string]: unknown
    }[]
  }
}
export interface FeedOpenQuery {
  /**
   * 1: leave out deleted boxes
   */
  live?: boolean
}
export interface FilesDownloadQuery {
  /**
   * absolute; or relative to the home directory, optionally with ~/
   */
  path: string
}
export interface FilesListQuery {
  /**
   * absolute; or relative to the home directory, optionally with ~/
   */
  path: string
  /**
   * default: 1000
   */
  limit?: number
  cursor?: string
}
export interface FilesReadQuery {
  /**
   * absolute; or relative to the home directory, optionally with ~/
   */
  path: string
}
export interface FilesRemoveQuery {
  /**
   * absolute; or relative to the home directory, optionally with ~/
   */
  path: string
  /**
   * 1: remove a directory with its content. Default: only an empty directory
   */
  recursive?: boolean
}
export interface FilesStatQuery {
  /**
   * absolute; or relative to the home directory, optionally with ~/
   */
  path: string
}
export interface FilesUploadQuery {
  /**
   * absolute; or relative to the home directory, optionally with ~/
   */
  path: string
  mode?: string
  /**
   * The modification time. RFC 3339, such as 2026-01-31T03:14:00Z or 2026-01-31T04:14:00+01:00, or epoch seconds. Default: now.
   */
  mtime?: string
}
export interface ImagesDeleteQuery {
  image: string
  region?: RegionName
}
export interface ImagesListResponse {
  images: Image[]
  /**
   * the regions whose engine does not answer
   */
  unavailable: {
    region: RegionName
    message: string
  }[]
}
export interface ImagesListQuery {
  region?: RegionName
}
export interface ImagesPullResponse {
  image: Image
}
export interface KeysCreateResponse {
  key: ApiKey
  /**
   * dcp_…, for the header Authorization: Bearer. Only this response contains it: the coordinator stores only its hash.
   */
  secret: string
}
export interface KeysGetResponse {
  key: ApiKey
}
export interface KeysListResponse {
  keys: ApiKey[]
  nextBefore?: NextBefore
}
export interface KeysListQuery {
  /**
   * 1: include revoked keys
   */
  revoked?: boolean
  /**
   * default: all keys; with before: 200
   */
  limit?: number
  /**
   * nextBefore of the previous page
   */
  before?: string
}
export interface KeysRotateResponse {
  key: ApiKey
  /**
   * dcp_…, for the header Authorization: Bearer. Only this response contains it: the coordinator stores only its hash.
   */
  secret: string
}
export interface KeysUpdateResponse {
  key: ApiKey
}
export interface MachinesListTokensResponse {
  /**
   * newest first
   */
  enrollments: Enrollment[]
}
export interface MembersInviteResponse {
  member: Member
  /**
   * true: the invitation is being sent by email. false: the coordinator sends no mail, so notify the person yourself. They sign in with their email address.
   */
  emailed: boolean
}
export interface MembersListResponse {
  /**
   * oldest first
   */
  members: Member[]
}
export interface MembersUpdateResponse {
  member: Member
}
export interface MountsCreateResponse {
  mount: SecretMount
}
export interface MountsListResponse {
  mounts: SecretMount[]
  /**
   * whether secrets can be used on the box: its agent sends a test request after each change. unknown: not tested since the agent has connected, or no secret is mounted
   */
  broker: {
    state: 'unknown' | 'ready' | 'failed'
    /**
     * why the test has failed
     */
    message: string | null
    checkedAt: Timestamp | null
  }
}
export interface OperationsGetResponse {
  operation: Operation
}
export interface OperatorAddCreditResponse {
  cause: string
  /**
   * false: an earlier request with this cause has added the credit
   */
  created: boolean
  workspace: OperatorWorkspace
}
export interface OperatorCheckLedgerResponse {
  /**
   * the number of checked workspaces
   */
  workspaces: number
  differences: LedgerDifference[]
}
export interface OperatorCheckLedgerQuery {
  /**
   * the id of a workspace. Default: all
   */
  workspace?: string
}
export interface OperatorHoldResponse {
  workspace: OperatorWorkspace
}
export interface OperatorListWorkspacesResponse {
  workspaces: OperatorWorkspace[]
  nextBefore: NextBefore
}
export interface OperatorListWorkspacesQuery {
  /**
   * default: 50
   */
  limit?: number
  /**
   * nextBefore of the previous page
   */
  before?: string
}
export interface OperatorRotateKeyResponse {
  rotated: boolean
  activeKeyId: string
  nextKeyId: string
  possibleAt: Timestamp
}
export interface PortSharesListQuery {
  /**
   * a page, newest first; default: all; with before: 200
   */
  limit?: number
  /**
   * nextBefore of the previous page
   */
  before?: string
}
export interface PortSharesRevokeResponse {
  revoked: true
}
export interface ProcessesAttachQuery {
  /**
   * bytes of stdout that the client has received; default 0
   */
  stdoutOffset?: number
  stderrOffset?: number
}
export interface ProcessesFollowOutputQuery {
  stdoutOffset?: number
  stderrOffset?: number
  /**
   * default both
   */
  streams?: 'stdout' | 'stderr' | 'both' | 'stdout,stderr' | 'stderr,stdout'
  /**
   * default utf8
   */
  encoding?: 'utf8' | 'base64'
  /**
   * start with the output that was written at this time or later, but not before the requested offsets; ignored for a stream whose times are unknown
   */
  since?: string | number
  /**
   * 1: `stdout` and `stderr` events have `at`, the time at which their output was written
   */
  timestamps?: boolean
}
export interface ProcessesGetQuery {
  /**
   * bytes of each stream; default 16384
   */
  tail?: number
}
export interface ProcessesListLiveQuery {
  /**
   * only the processes that this command has started
   */
  processId?: string
}
export interface PromptsFollowAllQuery {
  /**
   * only runs of this conversation
   */
  conversation?: string
  /**
   * has no effect
   */
  follow?: boolean
}
export interface PromptsInterruptAllQuery {
  /**
   * only runs of this conversation
   */
  conversation?: string
}
export interface PromptsListQuery {
  /**
   * only runs of this conversation
   */
  conversation?: string
}
export interface PromptsListEventsQuery {
  /**
   * seq of the last received event; default 0
   */
  after?: number
  /**
   * default 200. A page also stops at 1 MiB
   */
  limit?: number
  /**
   * 1: server-sent events
   */
  follow?: boolean
}
export interface RegionsListResponse {
  regions: Region[]
}
export interface ReposListResponse {
  repos: BoxRepo[]
}
export interface ReposUpdateResponse {
  repos: BoxRepo[]
}
export interface SecretsCreateResponse {
  secret: Secret
}
export interface SecretsGrantResponse {
  grant: SecretGrant
}
export interface SecretsListResponse {
  secrets: Secret[]
}
export interface SecretsListQuery {
  /**
   * id of a box: only the secrets that it may mount
   */
  box?: string
}
export interface SecretsListUsageResponse {
  /**
   * newest first, at most 1000
   */
  uses: SecretUse[]
}
export interface SecretsUpdateResponse {
  secret: Secret
}
export interface SessionChangeEmailResponse {
  user: SessionUser
}
export interface SessionUpdateUserResponse {
  user: SessionUser
}
export interface SessionsListResponse {
  /**
   * last used first
   */
  sessions: Session[]
}
export interface SnapshotsCreateResponse {
  snapshot: Snapshot
}
export interface SnapshotsDeleteResponse {
  snapshot: Snapshot
  operation: Operation
}
export interface SnapshotsListResponse {
  snapshots: Snapshot[]
}
export interface SnapshotsListQuery {
  /**
   * 1: include the copies that forks make
   */
  transient?: boolean
}
export interface SnapshotsMakeTemplateResponse {
  snapshot: Snapshot
  /**
   * the snapshot that had the name before
   */
  previous: Snapshot | null
}
export interface SnapshotsRemoveTemplateResponse {
  snapshot: Snapshot
}
export interface SnapshotsRestoreResponse {
  box: Box
}
export interface TeamGetStatusResponse {
  now: Timestamp
  /**
   * the billing cycle: the calendar month, in UTC. It ends before `end`
   */
  cycle: {
    start: Timestamp
    end: Timestamp
  }
  /**
   * own: the caller is a contractor. boxes has their boxes, recent the events of these boxes, and members is empty
   */
  scope: 'workspace' | 'own'
  /**
   * boxes that are not deleted, newest first
   */
  boxes: TeamBox[]
  /**
   * also invited ones, oldest first
   */
  members: TeamMember[]
  totals: {
    /**
     * micro-dollars; 0 while billing is off
     */
    spendTodayMicros: number
    /**
     * micro-dollars; 0 while billing is off
     */
    spendCycleMicros: number
    /**
     * boxes whose observedState is running
     */
    running: number
    sessions: OpenSessions
  }
  /**
   * the newest audit events. Of a contractor: those of their boxes that are not deleted
   *
   * @maxItems 50
   */
  recent: AuditEvent[]
}
export interface TerminalsAttachQuery {
  /**
   * default: a new session, or with create=never the newest session
   */
  session?: string
  /**
   * auto, the default: create the session, with a login shell, if it does not exist; never: 404
   */
  create?: 'auto' | 'never'
  /**
   * random id of the client: a client that reconnects with its id continues its stdin
   */
  client?: string
  /**
   * continue the output from here; default: the current screen
   */
  offset?: number
  /**
   * default: the size of the session
   */
  cols?: number
  rows?: number
  term?: string
}
export interface UsageGetQuery {
  /**
   * what each row is about; default: box
   */
  by?: 'box' | 'member' | 'day'
  /**
   * in UTC, such as 2030-01; default: the current month
   */
  month?: string
  /**
   * with by=day: adds `parts`
   */
  split?: 'box' | 'member'
}
export interface WorkspaceCloseResponse {
  workspace: Workspace
}
export interface WorkspaceGetResponse {
  workspace: Workspace
}
export interface WorkspaceReopenResponse {
  workspace: Workspace
}
export interface WorkspaceUpdateResponse {
  workspace: Workspace
}
export interface WorkspacesCreateResponse {
  workspace: Workspace
}
