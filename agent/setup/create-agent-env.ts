// The environment with which supervise.sh starts the agent.
import { readProxyVariables } from '../tunnel/proxy.ts'
import type { Layout } from './layout.ts'

type Input = {
  url: string
  boxId: string
  layout: Layout
  home: string
  /** Whether `layout.caFile` has certificates. */
  hasCa: boolean
  /** The environment of the installer, whose proxies the agent uses. */
  env: Readonly<Record<string, string | undefined>>
}

export const createAgentEnv = ({ url, boxId, layout, home, hasCa, env }: Input): Record<string, string> => ({
  BOXWOOD_URL: url,
  BOXWOOD_BOX: boxId,
  BOXWOOD_STATE: layout.stateDir,
  BOXWOOD_HOME: home,
  ...(hasCa ? { NODE_EXTRA_CA_CERTS: layout.caFile } : {}),
  // Like curl, the agent also trusts the authorities that the administrator has added to the system.
  NODE_USE_SYSTEM_CA: '1',
  ...readProxyVariables(env),
})
