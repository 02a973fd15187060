// Routes GET /exec, GET /exec/{processId} and DELETE /exec/{processId} (spec §4.14).
import {
  type ExecKilled,
  type ExecList,
  type ExecStatus,
  execStatusQuerySchema,
} from '../../../shared/api/processes.ts'
import { ApiError } from '../../../shared/errors.ts'
import { LIMITS } from '../../../shared/limits.ts'
import type { JsonRouter } from '../../requests/json-routes.ts'
import { validateRequest } from '../../validate-request.ts'
import { listResponse, statusResponse } from './responses.ts'
import type { DetachedProcess, DetachedProcesses } from './types.ts'

export function detachedRoutes(router: JsonRouter, processes: DetachedProcesses): void {
  router.add('GET', '/exec', (): ExecList => listResponse(processes.list()))

  router.add('GET', '/exec/:processId', ({ params, query }): Promise<ExecStatus> => {
    const detachedProcess = findProcess(processes, params.processId)
    const { tail } = validateRequest(execStatusQuerySchema, query, { root: 'query' })
    return statusResponse(detachedProcess, tail ?? LIMITS.detachedTailBytes.default)
  })

  router.add('DELETE', '/exec/:processId', async ({ params: { processId } }): Promise<ExecKilled> => {
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
