// POST /upgrade installs a build of the agent; POST /restart exits, so that the supervisor starts the current build.
import { agentBuildSchema, restartRequestSchema } from '../../shared/agent-build.ts'
import { ApiError } from '../../shared/errors.ts'
import type { JsonRouter } from '../requests/json-routes.ts'
import { validateRequest } from '../validate-request.ts'
import type { BuildState } from './build-state.ts'
import type { Builds } from './builds.ts'

export type UpgradeDeps = {
  /** null: the coordinator installs the builds of this box. */
  builds: Pick<Builds, 'install' | 'activate'> | null
  buildState: Pick<BuildState, 'clearFailure'>
  /**
   * Whether a restart would end something that a client uses.
   * @param terminalHostVersions that the next build can use
   */
  isInUse(terminalHostVersions: readonly number[]): boolean
  requestRestart(): void
}

export function upgradeRoutes(router: JsonRouter, deps: UpgradeDeps): void {
  const { builds, buildState, isInUse, requestRestart } = deps

  router.add('POST', '/upgrade', async (request) => {
    const build = validateRequest(agentBuildSchema, request.body)
    if (builds === null) throw new ApiError('bad_request', 'The coordinator installs the builds of this box.')
    await builds.install(build)
  })

  router.add('POST', '/restart', async (request) => {
    const { buildId, terminalHostVersions } = validateRequest(restartRequestSchema, request.body ?? {})
    if (isInUse(terminalHostVersions))
      throw new ApiError(
        'rate_limited',
        'A restart would end terminal sessions, or commands that receive stdin. Try again when they have exited.',
      )
    if (buildId !== undefined) {
      if (builds === null)
        throw new ApiError('bad_request', 'The coordinator installs the builds of this box.')
      await builds.activate(buildId)
    }
    await buildState.clearFailure()
    request.afterResponse(requestRestart)
  })
}
