// The routes with which the coordinator sets up the environment of the box: its secret files and its repositories.
import type { Logger } from 'pino'
import { agentRepoRequestSchema } from '../../shared/api/environment-delivery.ts'
import type { Clock } from '../../shared/clock.ts'
import { assertEnvironment } from '../exec/environment.ts'
import type { CredentialFiles } from '../files/credential-files.ts'
import { createTempFileSweeper } from '../files/temp-file.ts'
import { type JsonRouter, RequestResetError } from '../requests/json-routes.ts'
import { validateRequest } from '../validate-request.ts'
import { applyFiles } from './files.ts'
import type { Repos } from './repos.ts'

export type EnvironmentDeps = {
  home: string
  /** Real path of the agent's state directory. */
  stateDir: string
  credentialFiles: Pick<CredentialFiles, 'addSecretFile'>
  clock: Clock
  log: Logger
  repos: Repos
  /** When it aborts, new clones are refused. */
  stopping: AbortSignal
}

export function environmentRoutes(router: JsonRouter, deps: EnvironmentDeps): void {
  const { repos, stopping, clock } = deps
  const writeDeps = { ...deps, sweepTempFiles: createTempFileSweeper(clock) }
  router.add('PUT', '/environment-files', ({ body }) => applyFiles(body, writeDeps))
  router.add('PUT', '/environment-repos', ({ body }) => {
    if (stopping.aborted) throw new RequestResetError()
    const request = validateRequest(agentRepoRequestSchema, body)
    assertEnvironment(request.env)
    return repos.ensure(request)
  })
}
