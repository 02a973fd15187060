// The values and patterns of API fields, also for the box command. The schemas in api/ are built from them. This module does
// not import zod, whose load time the box command avoids.

/** Spec §5.11. */
export const ROLES = ['owner', 'member', 'contractor'] as const
/** The areas in which the access of a key can be limited (spec §5.8), each with its levels. A level includes those before it. */
export const ACCESS_LEVELS = {
  boxes: ['none', 'read', 'run', 'write'],
  workspace: ['none', 'read', 'write'],
  history: ['none', 'read'],
} as const
/** Why an operator has paused a workspace (spec §7.1, workspace_held). */
export const HOLDS = ['mining', 'cpu'] as const
/** The least role that may enroll machines. */
export const MACHINE_ENROLLMENT = ['owner', 'member'] as const
export const WEEKDAYS = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const

export const OBSERVED_STATES = [
  'requested',
  'provisioning',
  'bootstrapping',
  'running',
  'suspending',
  'suspended',
  'waking',
  'deep_sleep',
  'resizing',
  'migrating',
  'degraded',
  'provision_failed',
  'terminating',
  'terminated',
] as const

export const AGENT_STATES = ['current', 'outdated', 'upgrading', 'failed', 'offline'] as const

/** The name of an image, with an optional registry, tag and digest. */
export const IMAGE_PATTERN = /^[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,254}$/

/** Names of images in which `*` stands for any text. */
export const IMAGE_GLOB_PATTERN = /^[A-Za-z0-9*][A-Za-z0-9._:/@+*-]{0,254}$/

export const SNAPSHOT_STATUSES = ['creating', 'available', 'failed', 'deleting'] as const
export const SNAPSHOT_KINDS = ['manual', 'template', 'fork', 'auto', 'final'] as const

export const COMMAND_ID_PATTERN = /^p_[0-9a-f]{24}$/
export const COMMAND_MODES = ['sync', 'detached'] as const
export const FINAL_COMMAND_STATUSES = ['exited', 'killed', 'timed_out', 'failed', 'lost'] as const
export const COMMAND_STATUSES = ['running', ...FINAL_COMMAND_STATUSES] as const

/** The coding agents. */
export const PROVIDERS = ['claude', 'codex', 'opencode', 'pi'] as const
export const REASONING_EFFORTS = ['low', 'medium', 'high'] as const
export const RUN_ID_PATTERN = /^run_[0-9a-f]{24}$/
export const RUN_STATUSES = ['running', 'done', 'failed', 'interrupted'] as const
export const CONVERSATION_ID_PATTERN = /^cv_[0-9a-f]{24}$/

/** How workspaces pay. off: nothing has a price. */
export const BILLING_PROVIDERS = ['off', 'manual', 'stripe'] as const
/** What rows of the usage of a workspace are about. */
export const USAGE_GROUPS = ['box', 'member', 'day'] as const
/** A month in UTC, such as 2030-01. */
export const MONTH_PATTERN = /^\d{4}-(0[1-9]|1[0-2])$/

export const AUDIT_ORIGINS = ['server', 'client'] as const
export const AUDIT_ACTOR_KINDS = ['user', 'cli', 'ticket', 'mobile', 'system'] as const
/** The first event that is delivered to an endpoint: the request that sets it, or the oldest stored event. */
export const AUDIT_SINK_STARTS = ['now', 'start'] as const

/** What POST /desktop/start starts, and POST /desktop/stop stops (spec §4.17). */
export const DESKTOP_MODES = ['desktop', 'browser'] as const
/** The programs that a desktop consists of, by what they do. */
export const DESKTOP_PROGRAMS = ['display', 'viewer', 'windowManager', 'terminal', 'browser'] as const

/** Names of environment variables. */
export const ENV_NAME_PATTERN = /^[A-Za-z_][A-Za-z0-9_]*$/

/** Names of secrets. */
export const SECRET_NAME_PATTERN = /^[A-Z_][A-Z0-9_]{0,127}$/

/** Seconds since the epoch, with up to nine decimals. */
export const FILE_MTIME_PATTERN = /^\d{1,11}(\.\d{1,9})?$/

/** Of the entries of a directory. */
export const FILE_TYPES = ['file', 'directory', 'symlink', 'fifo', 'socket', 'device'] as const

/** The ARN of an IAM role, with an optional path. Its name is the text after the last slash. */
export const AWS_ROLE_ARN_PATTERN =
  /^arn:aws(-[a-z]+)*:iam::\d{12}:role\/([\w+=,.@-]+\/){0,16}[\w+=,.@-]{1,64}$/
/** The name of a profile in ~/.aws/config. */
export const AWS_PROFILE_PATTERN = /^[A-Za-z0-9][\w.@+-]{0,63}$/
/** The RoleSessionName of AWS. */
export const AWS_SESSION_NAME_PATTERN = /^[\w+=,.@-]{2,64}$/
/** The file of the token on a box. */
export const AWS_TOKEN_PATH = '~/.boxwood/aws/token'
export const MAX_CLOUD_PROFILES = 32
export const MAX_CLOUD_TOKEN_LENGTH = 8192

/** Prefixes of models that select a backend. */
export const BACKENDS = ['amazon-bedrock', 'openrouter', 'deepseek'] as const
export type Backend = (typeof BACKENDS)[number]
