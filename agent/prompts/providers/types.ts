// What the agent knows of one coding-agent CLI: its command line, its output lines and its credentials. Pure, apart from
// the files that isSignedIn reads.
import type { PromptEventType, ProviderName, ReasoningEffort } from '../../../shared/api/prompts.ts'
import type { Backend } from '../../../shared/field-values.ts'

export type JsonObject = { readonly [key: string]: unknown }

/** An event before it has a number and a time. `tool.input` is null where the CLI does not repeat it. */
export type MappedEvent = {
  type: PromptEventType
  text: string | null
  tool: { name: string; input: unknown } | null
}

/** The last final event of a run. */
export type Outcome = { status: 'done' } | { status: 'failed'; message: string }

/** What earlier lines of a run have shown. Plain JSON, because checkpoints of the log store it. Bounded in size. */
export type MapperState = {
  sessionId: string | null
  /** null: no final event so far. A later final event replaces an earlier one. */
  outcome: Outcome | null
  /** The coding agent has begun another turn after `outcome`, and has not reported its end. */
  isContinued: boolean
  /** A task in the background, such as a sub-agent, has started and has not ended. */
  hasBackgroundTasks: boolean
  /** The last line was omitted or could not be read. It may have been a final event. */
  isLastLineOmitted: boolean
  /** Text or a tool call was seen. */
  hasContent: boolean
  /** What the lines of this provider have shown. */
  data: JsonObject
}

export const INITIAL_MAPPER_STATE: MapperState = {
  sessionId: null,
  outcome: null,
  isContinued: false,
  hasBackgroundTasks: false,
  isLastLineOmitted: false,
  hasContent: false,
  data: {},
}

export type MappedLine = { events: MappedEvent[]; state: MapperState }

/** The model of a request, split at a backend prefix. */
export type ModelSelection = {
  /** The model as requested. */
  full: string
  backend: Backend | null
  /** The model without the prefix of the backend. */
  name: string
}

export type CommandOptions = {
  model: ModelSelection | null
  effort: ReasoningEffort | null
  auto: boolean
  /** The session to resume. */
  sessionId: string | null
  /** The environment of the run without the provider's own variables: the login shell's and the box's. */
  env: Readonly<Record<string, string>>
  /** A directory of the run, deleted afterwards. */
  tmpDir: string
  isRoot: boolean
  /** The version that the program prints. Default: a current version. */
  version?: string
}

export type CredentialInput = {
  model: ModelSelection | null
  env: Readonly<Record<string, string>>
  /** The text of a file; null when it does not exist or is not readable. */
  readText(path: string): Promise<string | null>
}

export type Provider = {
  readonly name: ProviderName
  /** File name of the program on PATH. */
  readonly program: string
  /** npm package with its version, which the agent installs when the program is missing. null: never installed. */
  readonly installPackage: string | null
  /** The signal that is sent first on an interrupt; SIGKILL follows after a grace period. */
  readonly interruptSignal: 'INT' | 'TERM'
  /** The default of `auto`. */
  readonly defaultAuto: boolean
  /** The arguments without the program, and variables that are added to the environment. The prompt is stdin. */
  buildCommand(options: CommandOptions): { args: string[]; env: Record<string, string> }
  /** Changes a prompt that the CLI would otherwise not take literally. */
  encodePrompt(prompt: string): string
  /** The events of one line that is a JSON object. Never throws: unknown lines become no event or a notice. */
  mapLine(line: JsonObject, state: MapperState): MappedLine
  /** Resolves what the last lines mean when the output ends without a final event; null: the run has no result. */
  resolveUnfinished(state: MapperState): Outcome | null
  /** Absolute paths of the files with credentials, which are watched. */
  credentialFiles(env: Readonly<Record<string, string>>): string[]
  /** Whether there is a credential for the provider or the backend of the model. A placeholder counts. */
  isSignedIn(input: CredentialInput): Promise<boolean>
  /** Variables for a credential that the CLI would not use by itself. Added to the environment of a run. */
  credentialVariables(input: CredentialInput): Promise<Record<string, string>>
  /** What to do when isSignedIn is false: a sentence. */
  signInHint(model: ModelSelection | null): string
}
