// The methods of the Tasks extension: tasks/get, tasks/update and tasks/cancel.
import {
  CLIENT_CAPABILITIES_META_KEY,
  type McpServer,
  MissingRequiredClientCapabilityError,
  ProtocolError,
  ProtocolErrorCode,
  type ServerContext,
} from '@modelcontextprotocol/server'
import { z } from 'zod'
import { BoxwoodError, NotFoundError } from '../../client/http/errors.ts'
import type { Call, Context } from '../context.ts'
import { ToolError } from '../errors.ts'
import { cleanLine } from '../text/clean.ts'
import { findTask, readTask, readTaskResult } from './task.ts'

const EXTENSION = 'io.modelcontextprotocol/tasks'
const EXTENSIONS = { [EXTENSION]: {} }
const PARAMS = { params: z.looseObject({ taskId: z.string() }) }

type Request = ServerContext['mcpReq']

/** The capabilities that the client declares in each request. The SDK does not type them. */
const DECLARED = z.looseObject({
  [CLIENT_CAPABILITIES_META_KEY]: z.looseObject({
    extensions: z.looseObject({ [EXTENSION]: z.looseObject({}) }),
  }),
})

/** Whether the client accepts a task as the answer of this request. Clients of earlier revisions declare other capabilities. */
export const acceptsTasks = ({ envelope }: Request): boolean => DECLARED.safeParse(envelope).success

/** Before the server is connected. */
export function serveTasks(
  { server }: McpServer,
  context: Context,
  toCall: (request: Request) => Call,
): void {
  const handle = (method: string, run: (taskId: string, call: Call) => Promise<Record<string, unknown>>) =>
    server.setRequestHandler(method, PARAMS, async ({ taskId }, { mcpReq }) => {
      if (!acceptsTasks(mcpReq))
        throw new MissingRequiredClientCapabilityError({ requiredCapabilities: { extensions: EXTENSIONS } })
      return context.track(run(taskId, toCall(mcpReq)).catch(throwProtocolError))
    })
  server.registerCapabilities({ extensions: EXTENSIONS })
  handle('tasks/get', async (taskId, call) => {
    const ref = await findTask(context, taskId, call)
    const task = await readTask(ref, call)
    return task.status === 'working'
      ? task
      : { ...task, result: await readTaskResult(ref, context.maxWaitMs, call) }
  })
  handle('tasks/cancel', async (taskId, call) => {
    const { box, processId } = await findTask(context, taskId, call)
    await box.process(processId).kill({ signal: call.signal })
    return {}
  })
  // No task asks for input.
  handle('tasks/update', async (taskId, call) => {
    await readTask(await findTask(context, taskId, call), call)
    return {}
  })
}

function throwProtocolError(error: unknown): never {
  if (!(error instanceof BoxwoodError || error instanceof ToolError)) throw error
  const isUnknown = error instanceof ToolError || error instanceof NotFoundError
  const code = isUnknown ? ProtocolErrorCode.InvalidParams : ProtocolErrorCode.InternalError
  throw new ProtocolError(code, cleanLine(error.message))
}
