// Starts the agent in a running instance, beside the init of the image, and checks whether it runs.
import { NODE_FLAGS } from '../../agents/bundles/node-flags.ts'
import { CONTAINER_PATHS, NODE_FILES } from '../container/paths.ts'
import { hasStatus } from '../engine-http/errors.ts'
import { ImageError, type MachineSpec } from '../provider.ts'
import type { IncusClient } from './client.ts'
import { createEnvironment, PATHS } from './machine.ts'

/** Exit codes of the scripts: those of the shell, and our own. */
const EXIT = { isRunning: 0, isNotRunning: 3, notFound: 127, notExecutable: 126 }

/** The process that is named in the lock: `init.pid` in the state directory. A pid can have been reused. */
const FIND_INIT = `state=$BOXWOOD_STATE
is_running() {
  read -r pid <"$state/init.pid" && case $(tr '\\0' ' ' <"/proc/$pid/cmdline") in *"$INIT"*) ;; *) false ;; esac
} 2>/dev/null
`

/**
 * Writes the files of the connection: those of variables that are set. Starts the init unless it runs; a restarted coordinator must
 * not start it again. With RESTART, a running agent is restarted by its init. A disk that is full must not leave an empty file.
 */
const START = `${FIND_INIT}set -e
umask 077
mkdir -p "$state" "$HOME"
write() {
  [ -n "$2" ] || return 0
  printf '%s' "$2" >"$state/$1.new"
  mv -f "$state/$1.new" "$state/$1"
}
write settings "$SETTINGS"
write url "$URL"
write token "$TOKEN"
if is_running; then
  [ -z "$RESTART" ] || for child in $(cat "/proc/$pid/task/$pid/children"); do
    case $(tr '\\0' ' ' <"/proc/$child/cmdline") in *agent.mjs*) kill -TERM "$child" ;; esac
  done
  exit 0
fi
umask 022
if [ -n "$NAME" ]; then
  # The name of the instance is the host name until here.
  hostname "$NAME" || :
  { echo "$NAME" >/etc/hostname && grep -qw "$NAME" /etc/hosts || echo "127.0.1.1 $NAME" >>/etc/hosts; } 2>/dev/null || :
fi
unset SETTINGS URL TOKEN RESTART NAME
session=
! command -v setsid >/dev/null || session=setsid
$session /bin/sh -c 'echo $$ >"$BOXWOOD_STATE/init.pid"; exec /bin/sh "$@"' sh "$INIT" "$@" >"$state/init.log" 2>&1 </dev/null &
# The next call finds the init.
until is_running; do
  kill -0 $! || exit 1
  sleep 0.01
done
`

const CHECK = `${FIND_INIT}is_running || exit ${EXIT.isNotRunning}`

const CHECK_TIMEOUT_MS = 20_000
const START_TIMEOUT_MS = 60_000

export type AgentStart = {
  spec: Pick<MachineSpec, 'boxId'>
  /** What is absent stays as it is on the disk of the box. */
  hostname?: string
  settings?: string
  url?: string
  token?: string
  /** Restarts a running agent, so that it reads its settings. Commands continue. */
  restarts?: boolean
}

export async function startAgent(client: IncusClient, instance: string, start: AgentStart): Promise<void> {
  const agent = [`${CONTAINER_PATHS.nodeDir}/${NODE_FILES.program}`, ...NODE_FLAGS, CONTAINER_PATHS.agent]
  const environment = {
    ...createEnvironment(start.spec),
    INIT: CONTAINER_PATHS.init,
    NAME: start.hostname ?? '',
    SETTINGS: start.settings ?? '',
    URL: start.url ?? '',
    TOKEN: start.token ?? '',
    RESTART: start.restarts ? '1' : '',
  }
  const status = await runScript(client, instance, [START, 'sh', ...agent], environment, START_TIMEOUT_MS)
  if (status === EXIT.notFound || status === EXIT.notExecutable)
    throw new ImageError('image_unusable', 'The image has no usable /bin/sh. Choose another image.')
  if (status !== 0)
    throw new Error(
      `The agent of the box was not started: the start script exited with ${status}. See ${PATHS.state}/init.log in the box.`,
    )
}

/** Whether the init of the agent runs. Returns true when the instance does not answer in time: it may be overloaded. */
export async function isAgentRunning(
  client: IncusClient,
  instance: string,
  spec: Pick<MachineSpec, 'boxId'>,
): Promise<boolean> {
  const environment = { ...createEnvironment(spec), INIT: CONTAINER_PATHS.init }
  const status = await runScript(client, instance, [CHECK], environment, CHECK_TIMEOUT_MS)
  return status !== EXIT.isNotRunning
}

/** Returns the exit status. */
async function runScript(
  client: IncusClient,
  instance: string,
  [script = '', ...args]: string[],
  environment: Record<string, string>,
  timeoutMs: number,
): Promise<number> {
  const json = {
    command: ['/bin/sh', '-c', script, ...args],
    environment,
    cwd: '/',
    interactive: false,
    'wait-for-websocket': false,
    'record-output': false,
  }
  try {
    const { return: status } = await client.call('POST', `/instances/${instance}/exec`, { json, timeoutMs })
    return Number(status)
  } catch (error) {
    // Incus versions differ in whether a missing program is a failure of the call.
    if (/not found|no such file/i.test((error as Error).message) && !hasStatus(error, 404))
      return EXIT.notFound
    throw error
  }
}
