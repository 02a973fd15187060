// Requests the archive of a build from the coordinator.
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { type AgentBuild, getArchivePath } from '../../shared/agent-build.ts'
import { toRequestTarget } from '../tunnel/coordinator-url.ts'
import { noProxy, type SelectProxy } from '../tunnel/proxy.ts'

/** A connection without progress for this long is closed. */
const IDLE_MS = 60_000

export function createArchiveFetcher(readUrl: () => Promise<string>, selectProxy: SelectProxy = noProxy) {
  return async (build: AgentBuild, signal: AbortSignal): Promise<IncomingMessage> => {
    const url = await readUrl()
    const target = toRequestTarget(url, getArchivePath(build))
    const send = target.protocol === 'https:' ? httpsRequest : httpRequest
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
    const request = send({ ...target, agent: selectProxy(url) ?? false, signal })
    request.setTimeout(IDLE_MS, () => request.destroy(new Error('The download made no progress.')))
    request.once('response', resolve)
    request.on('error', reject)
    request.end()
    const response = await promise
    if (response.statusCode === 200) return response
    response.destroy()
    throw new Error(`The coordinator responded with status ${response.statusCode}.`)
  }
}
