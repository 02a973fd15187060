// The paths of Boxwood in a container.
import { RUNTIME_FILES, RUNTIME_LINKS } from '../parts/runtime.ts'

/** The volume with the files of the agent, which all boxes of an engine share. */
const AGENT_DIR = '/opt/boxwood/agent'

export const CONTAINER_PATHS = {
  agentDir: AGENT_DIR,
  /** The link to the directory of Node: see NODE_FILES. */
  nodeDir: `${AGENT_DIR}/${RUNTIME_LINKS.node}`,
  init: `${AGENT_DIR}/${RUNTIME_LINKS.current}/${RUNTIME_FILES.init}`,
  agent: `${AGENT_DIR}/${RUNTIME_LINKS.current}/${RUNTIME_FILES.agent}`,
  /** The directory of the coordinator's socket. */
  socketDir: '/opt/boxwood/coordinator',
  state: '/var/lib/boxwood',
  home: '/root',
} as const

/** Names in the directory of Node. */
export const NODE_FILES = { program: 'node', libraries: 'lib' } as const

/** The name of the file in the state directory with the build that the agent has: agent/init/agent-loop.sh. */
export const CONNECTED_BUILD_FILE = 'connected-build'

/** The name of the file in the state directory from which the init reads the variables of the agent at each start. */
export const SETTINGS_FILE = 'settings'
