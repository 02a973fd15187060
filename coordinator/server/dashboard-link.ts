// The link in the output of a start that signs the owner in to the dashboard, once.
import { isLoopback } from '../../shared/loopback.ts'
import type { Coordinator } from './app.ts'

/** null: the dashboard is turned off, or no URL of the coordinator is one at which browsers store a session. */
export async function createDashboardLink({ context }: Pick<Coordinator, 'context'>): Promise<string | null> {
  const { config, urls, sessions } = context
  const url = [urls.public, urls.listener].find(storesSessions)
  if (!config.dashboard || url === undefined) return null
  return `${url}/sign-in#${(await sessions.signIn.createFirstLink()).secret}`
}

function storesSessions(url: string): boolean {
  const { protocol, hostname } = new URL(url)
  return protocol === 'https:' || isLoopback(hostname)
}
