// Routes GET /exec, GET /exec/{processId} and DELETE /exec/{processId} (spec §4.14).
import type { FastifyInstance } from 'fastify'
import {
  type ExecKilled,
  type ExecList,
  type ExecStatus,
  execStatusQuerySchema,
} from '../../../shared/api/processes.ts'
import { ApiError } from '../../../shared/errors.ts'
import { LIMITS } from '../../../shared/limits.ts'
import { validateRequest } from '../../validate-request.ts'
import { listResponse, statusResponse } from './responses.ts'
import type { DetachedProcess, DetachedProcesses } from './types.ts'

type Params = { Params: { processId: string } }

export function detachedRoutes(app: FastifyInstance, processes: DetachedProcesses): void {
  app.get('/exec', async (): Promise<ExecList> => {
    return listResponse(processes.list())
  })

  app.get<Params>('/exec/:processId', async (request): Promise<ExecStatus> => {
    const detachedProcess = findProcess(processes, request.params.processId)
    const { tail } = validateRequest(execStatusQuerySchema, request.query, { root: 'query' })
    return statusResponse(detachedProcess, tail ?? LIMITS.detachedTailBytes.default)
  })

  app.delete<Params>('/exec/:processId', async (request): Promise<ExecKilled> => {
    const { processId } = request.params
    return { ok: true, type: 'exec.killed', processId, ...(await processes.kill(processId)) }
  })
}

/** @throws ApiError not_found */
export function findProcess(processes: DetachedProcesses, processId: string): DetachedProcess {
  const detachedProcess = processes.get(processId)
  if (detachedProcess === undefined)
    throw new ApiError('not_found', `Process ${processId} not found. Check the id.`)
  return detachedProcess
}
