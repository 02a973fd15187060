// The responses of agents by their `type`: the schema, and bounds that no response of a correct agent exceeds.
import {
  agentDesktopStatusSchema,
  desktopStartedSchema,
  desktopStoppedSchema,
} from '../../shared/api/desktop.ts'
import { execResultSchema } from '../../shared/api/exec.ts'
import {
  directoryCreatedSchema,
  fileListSchema,
  fileMovedSchema,
  fileReadSchema,
  fileRemovedSchema,
  fileStatSchema,
  fileUploadedSchema,
  fileWrittenSchema,
} from '../../shared/api/files.ts'
import {
  LIVE_COMMAND_CHARS,
  liveProcessesSchema,
  MAX_LIVE_PROCESSES,
} from '../../shared/api/live-processes.ts'
import {
  execKilledSchema,
  execListSchema,
  execStartedSchema,
  execStatusSchema,
} from '../../shared/api/processes.ts'
import { terminalKilledSchema, terminalListSchema, terminalStartedSchema } from '../../shared/api/terminal.ts'
import { LIMITS } from '../../shared/limits.ts'
import { PROMPT_RESPONSES } from './prompt-response-types.ts'
import type { Bounds } from './response-bounds.ts'

const KiB = 1024

/** JSON may need a six-byte escape for each byte. */
const ESCAPED = 6
/** Two paths or a command of 64 KiB, and the other fields. */
const FIELDS_BYTES = 256 * KiB
/** Leaves room for fields that a newer agent adds. */
const FIELDS_TOKENS = 256

export const AGENT_RESPONSES = {
  'exec.result': {
    schema: execResultSchema,
    maxBytes: 2 * ESCAPED * LIMITS.syncOutputBytes + FIELDS_BYTES,
    maxTokens: FIELDS_TOKENS,
  },
  'exec.started': { schema: execStartedSchema, maxBytes: FIELDS_BYTES, maxTokens: FIELDS_TOKENS },
  'exec.list': {
    schema: execListSchema,
    // A command of 2048 characters and the other fields of each process.
    maxBytes: LIMITS.listedProcesses * (ESCAPED * 2 * KiB + KiB),
    maxTokens: LIMITS.listedProcesses * 32,
  },
  'exec.status': {
    schema: execStatusSchema,
    maxBytes: 2 * ESCAPED * LIMITS.detachedTailBytes.max + FIELDS_BYTES,
    maxTokens: FIELDS_TOKENS,
  },
  'exec.killed': { schema: execKilledSchema, maxBytes: 4 * KiB, maxTokens: FIELDS_TOKENS },
  'process.list': {
    schema: liveProcessesSchema,
    // A command, a name and a user, and the other fields of each process.
    maxBytes: MAX_LIVE_PROCESSES * (ESCAPED * (LIVE_COMMAND_CHARS + 128) + KiB),
    maxTokens: MAX_LIVE_PROCESSES * 32,
  },
  'terminal.started': { schema: terminalStartedSchema, maxBytes: FIELDS_BYTES, maxTokens: FIELDS_TOKENS },
  'terminal.list': {
    schema: terminalListSchema,
    // A command of 2048 characters and the other fields of each session.
    maxBytes: LIMITS.terminalSessions * (ESCAPED * 2 * KiB + KiB),
    maxTokens: LIMITS.terminalSessions * 32,
  },
  'terminal.killed': { schema: terminalKilledSchema, maxBytes: 4 * KiB, maxTokens: FIELDS_TOKENS },
  'desktop.status': { schema: agentDesktopStatusSchema, maxBytes: FIELDS_BYTES, maxTokens: FIELDS_TOKENS },
  'desktop.started': { schema: desktopStartedSchema, maxBytes: FIELDS_BYTES, maxTokens: FIELDS_TOKENS },
  'desktop.stopped': { schema: desktopStoppedSchema, maxBytes: 4 * KiB, maxTokens: FIELDS_TOKENS },
  'file.read': {
    schema: fileReadSchema,
    maxBytes: ESCAPED * LIMITS.inlineFileBytes + FIELDS_BYTES,
    maxTokens: FIELDS_TOKENS,
  },
  'file.written': { schema: fileWrittenSchema, maxBytes: FIELDS_BYTES, maxTokens: FIELDS_TOKENS },
  'file.uploaded': { schema: fileUploadedSchema, maxBytes: FIELDS_BYTES, maxTokens: FIELDS_TOKENS },
  'file.list': {
    schema: fileListSchema,
    // A name of 255 bytes, a target of 4 KiB and the other fields of each entry.
    maxBytes: LIMITS.filePage.max * (ESCAPED * (4 * KiB + 255) + KiB) + FIELDS_BYTES,
    maxTokens: LIMITS.filePage.max * 32 + FIELDS_TOKENS,
  },
  'file.stat': { schema: fileStatSchema, maxBytes: FIELDS_BYTES, maxTokens: FIELDS_TOKENS },
  'directory.created': { schema: directoryCreatedSchema, maxBytes: FIELDS_BYTES, maxTokens: FIELDS_TOKENS },
  'file.moved': { schema: fileMovedSchema, maxBytes: FIELDS_BYTES, maxTokens: FIELDS_TOKENS },
  'file.removed': { schema: fileRemovedSchema, maxBytes: FIELDS_BYTES, maxTokens: FIELDS_TOKENS },
  ...PROMPT_RESPONSES,
} as const satisfies Record<string, Bounds>

export type AgentResponseType = keyof typeof AGENT_RESPONSES
