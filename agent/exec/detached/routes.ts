// GET /exec, GET /exec/{processId} and DELETE /exec/{processId}: detached processes (spec §4.14).
import type { FastifyInstance } from 'fastify'
import {
  type ExecKilled,
  type ExecList,
  type ExecStatus,
  statusQuery,
} from '../../../shared/api/processes.ts'
import { ApiError } from '../../../shared/errors.ts'
import { LIMITS } from '../../../shared/limits.ts'
import { listAnswer, statusAnswer } from './answers.ts'
import type { DetachedProcess, DetachedProcesses } from './types.ts'

type Params = { Params: { processId: string } }

export function detachedRoutes(app: FastifyInstance, processes: DetachedProcesses): void {
  app.get('/exec', async (): Promise<ExecList> => {
    return listAnswer(processes.list())
  })

  app.get<Params>('/exec/:processId', async (request): Promise<ExecStatus> => {
    const process = findProcess(processes, request.params.processId)
    const query = statusQuery.safeParse(request.query)
    if (!query.success)
      throw new ApiError('invalid_request', `tail: ${query.error.issues[0]?.message ?? 'not valid'}`)
    return statusAnswer(process, query.data.tail ?? LIMITS.detachedTailBytes.default)
  })

  app.delete<Params>('/exec/:processId', async (request): Promise<ExecKilled> => {
    const { processId } = request.params
    return { ok: true, type: 'exec.killed', processId, ...(await processes.kill(processId)) }
  })
}

/** @throws ApiError not_found */
export function findProcess(processes: DetachedProcesses, processId: string): DetachedProcess {
  const process = processes.get(processId)
  if (process === undefined) throw new ApiError('not_found', `${processId}: no such process.`)
  return process
}
