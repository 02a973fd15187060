// What a tool consists of.
import type { z } from 'zod'
import type { Call, Context } from './context.ts'

/** The access to boxes that a tool needs, in the levels of API keys. */
export type Level = 'read' | 'run' | 'write'

/** What the key and the flags allow. */
export type Grants = {
  level: 'none' | Level
  /** New boxes, which a key or server that is limited to some boxes may not create. */
  canCreate: boolean
  canDelete: boolean
  canSharePublicly: boolean
}

/** Fields of the Tasks extension. */
export type Task = {
  taskId: string
  status: 'working' | 'completed'
  statusMessage: string
  createdAt: string
  lastUpdatedAt: string
  /** null: as long as the box keeps the command. */
  ttlMs: null
  pollIntervalMs: number
}

export type Answer<Data> = {
  /** A short text, with the text of a box as labelled data. */
  text: string
  /** The same for programs. */
  data: Data
  image?: { data: string; mimeType: string }
  /** The command of the call continues as this task. */
  task?: Task
}

/** What a tool does, for a host that asks its user. */
export type Effects = {
  readOnlyHint: boolean
  destructiveHint: boolean
  idempotentHint: boolean
  openWorldHint: boolean
}

export type Tool = {
  name: string
  title: string
  description: string
  inputSchema: z.ZodObject
  outputSchema: z.ZodObject
  annotations: Effects
  run(context: Context, input: unknown, call: Call): Promise<Answer<unknown>>
}

type Definition<Input extends z.ZodObject, Output extends z.ZodObject> = Omit<
  Tool,
  'inputSchema' | 'outputSchema' | 'run'
> & {
  inputSchema: Input
  outputSchema: Output
  run(context: Context, input: z.infer<Input>, call: Call): Promise<Answer<z.infer<Output>>>
}

/** The tool with its grants applied; null: they do not allow it. */
export type ToolFactory = (grants: Grants) => Tool | null

/** The SDK validates the input by the schema before it calls run(). */
export const defineTool = <Input extends z.ZodObject, Output extends z.ZodObject>(
  definition: Definition<Input, Output>,
): Tool => ({
  ...definition,
  run: (context, input, call) => definition.run(context, input as z.infer<Input>, call),
})

const LEVELS = ['none', 'read', 'run', 'write'] as const

export const allows = ({ level }: Grants, needed: Level): boolean =>
  LEVELS.indexOf(level) >= LEVELS.indexOf(needed)
