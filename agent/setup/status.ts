// Prints the state of the agent on this machine.
import { readAgentEnv } from './agent-env.ts'
import { readConnection } from './connection.ts'
import { readRecord } from './install-record.ts'
import { getLayout, readTarget } from './layout.ts'
import { findSupervisors } from './processes.ts'
import { SetupError } from './setup-error.ts'

/** Returns whether the agent is connected. @throws SetupError when there is no installation in the prefix */
export async function printStatus(prefix: string, print: (line: string) => void): Promise<boolean> {
  const layout = getLayout(prefix)
  const record = await readRecord(layout.recordFile)
  if (record === null)
    throw new SetupError(`There is no agent in ${prefix}. Pass its directory with --prefix.`)
  const connection = await readConnection(layout.stateDir)
  const isRunning = findSupervisors(prefix).length > 0
  const isConnected = isRunning && connection?.connected === true
  const env = await readAgentEnv(layout.envFile)
  print(`box          ${record.name}`)
  print(`coordinator  ${env?.BOXWOOD_URL ?? 'unknown'}`)
  print(`service      ${record.service}`)
  print(`build        ${(await readTarget(layout.current))?.split('/').at(-1) ?? 'none'}`)
  print(`agent        ${isConnected ? 'connected' : isRunning ? 'not connected' : 'not running'}`)
  const reason = connection?.message ?? connection?.reason
  if (!isConnected && reason !== undefined) print(`reason       ${reason}`)
  return isConnected
}
