// An agent in memory with a desktop, for tests of its routes on the edge.
import type { TunnelCall } from '../../coordinator/agents/tunnel/types.ts'
import type { AgentDesktopStatus, DesktopMode, DesktopSession } from '../../shared/api/desktop.ts'
import { ApiError } from '../../shared/errors.ts'
import { DESKTOP_PROGRAMS } from '../../shared/field-values.ts'
import type { AgentHandler } from './box-with-fake-agent.ts'
import { respondError, respondJson } from './fake-prompt-agent.ts'

export function createFakeDesktopAgent() {
  const modes = new Set<DesktopMode>()
  const requests: { method: string; path: string; body: Record<string, unknown> }[] = []
  /** How the agent responds to the next requests, instead of as a correct agent. */
  const state: {
    failure: ApiError | object | null
    lost: boolean
    programs: AgentDesktopStatus['programs']
  } = {
    failure: null,
    lost: false,
    programs: DESKTOP_PROGRAMS.map((role) => ({ role, program: role })),
  }
  const describe = (): DesktopSession => ({
    ...{ display: ':1', authority: '/state/authority', width: 1280, height: 800, dpi: 96, viewers: 0 },
    modes: [...modes],
    startedAt: '2030-01-01T00:00:00.000Z',
  })

  function respond({ method, path }: TunnelCall, body: Record<string, unknown>): object {
    const mode = (body.mode ?? 'desktop') as DesktopMode
    if (path === '/desktop/start') {
      const alreadyRunning = modes.has(mode)
      modes.add(mode)
      return { ok: true, type: 'desktop.started', mode, alreadyRunning, session: describe() }
    }
    if (path === '/desktop/stop') {
      const wasRunning = modes.delete(mode)
      if (mode === 'desktop') modes.clear()
      return { ok: true, type: 'desktop.stopped', mode, wasRunning }
    }
    if (method !== 'GET' || path !== '/desktop') throw new Error(`unexpected request ${method} ${path}`)
    return {
      ...{ ok: true, type: 'desktop.status' },
      programs: state.programs,
      session: modes.size > 0 ? describe() : null,
    }
  }

  const handler: AgentHandler = async (request) => {
    const { method, path, body } = request
    if (path === '/desktop/stream') {
      const { failure } = state
      if (failure instanceof ApiError) return respondError(failure)
      return respondJson(200, '')
    }
    if (!path.startsWith('/desktop')) return respondError(new ApiError('not_found'))
    const parsed = JSON.parse(body ?? '{}')
    requests.push({ method, path, body: parsed })
    if (state.lost) throw new ApiError('box_unreachable')
    const { failure } = state
    if (failure instanceof ApiError) return respondError(failure)
    return respondJson(200, failure ?? respond(request, parsed))
  }
  return { handler, requests, state }
}
