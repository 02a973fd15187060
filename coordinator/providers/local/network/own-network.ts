// A network namespace for each box. slirp4netns, a user-mode network stack, forwards the box's outbound connections.
import { accessSync, constants, existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { isInstalled } from '../../parts/system-path.ts'
import { type LevelInput, SHELL_PATH } from '../level-input.ts'

const SCRIPT = fileURLToPath(new URL('own-network.sh', import.meta.url))

/** Programs on SYSTEM_PATH that the network of a box needs. */
const PROGRAMS = ['slirp4netns', 'ip', 'unshare', 'mkfifo']

const TUN_DEVICE = '/dev/net/tun'

/** Why boxes of this user cannot have their own network; null when the requirements are met. */
export function findMissingRequirement(): string | null {
  const program = PROGRAMS.find((name) => !isInstalled(name))
  if (program !== undefined) return `${program} is not installed`
  try {
    accessSync(TUN_DEVICE, constants.R_OK | constants.W_OK)
    return null
  } catch {
    return existsSync(TUN_DEVICE)
      ? `this user cannot open ${TUN_DEVICE} (chmod 666 ${TUN_DEVICE})`
      : `${TUN_DEVICE} does not exist (modprobe tun)`
  }
}

/**
 * Builds the command line of a box in a network namespace of its own.
 * @param buildCommand builds the command line of the box at its isolation level
 * @param dir a directory of the host that the box cannot write to
 */
export function buildOwnNetworkCommand(
  buildCommand: (input: LevelInput) => string[],
  input: LevelInput,
  dir: string,
): string[] {
  // An ordinary user needs a user namespace to create and configure the network namespace.
  const unshareArgs = input.uid === null ? ['--user', '--map-root-user'] : []
  return [SHELL_PATH, SCRIPT, dir, ...unshareArgs, '--', ...buildCommand(input)]
}
