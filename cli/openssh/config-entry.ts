// The OpenSSH configuration of one box.

import { basename, dirname } from 'node:path'
import { shellQuote } from '../../shared/shell-quote.ts'
import { type CoordinatorConfig, formatProfileSource } from '../connection/find-coordinator.ts'
import { LOCAL } from '../connection/select-profile.ts'

export type ConfigEntry = {
  boxName: string
  user: string
  keyPath: string
  /** Starts this box command with arguments: a shell command line. */
  boxCommand: string
}

/** The host name is that of the box with the prefix `box-`. */
export const formatConfigEntry = ({ boxName, user, keyPath, boxCommand }: ConfigEntry): string =>
  `Host box-${boxName}
  User ${user}
  ProxyCommand ${escapePercent(`${boxCommand} ssh-proxy ${boxName}`)}
  IdentityFile "${escapePercent(keyPath)}"
  IdentitiesOnly yes
  # The coordinator authenticates the connection. The box creates its host key at the first connection.
  StrictHostKeyChecking no
  UserKnownHostsFile /dev/null
  LogLevel ERROR
`

/** Escapes the value of an option in which ssh expands tokens such as %h. */
const escapePercent = (text: string): string => text.replaceAll('%', '%%')

/**
 * The variables that make `box` use this coordinator and the same client key from any directory. An API key from the
 * environment is not included, because the configuration is not secret.
 */
export function getProxyEnv({ baseUrl, urlSource, keySource, profile }: CoordinatorConfig): string[] {
  const { XDG_CONFIG_HOME } = process.env
  const usesDataDir = basename(keySource) === 'owner.key'
  const usesProfile = profile !== undefined && keySource === formatProfileSource(profile.name)
  return [
    ...(usesDataDir ? [`BOXWOOD_DATA=${dirname(keySource)}`] : []),
    // The profile `local` finds the coordinator by the data directory.
    ...(usesProfile ? [`BOXWOOD_PROFILE=${profile.name}`] : []),
    ...(usesProfile && profile.name === LOCAL ? [`BOXWOOD_DATA=${dirname(urlSource)}`] : []),
    ...(urlSource === 'BOXWOOD_URL' || !(usesDataDir || usesProfile) ? [`BOXWOOD_URL=${baseUrl}`] : []),
    ...(XDG_CONFIG_HOME ? [`XDG_CONFIG_HOME=${XDG_CONFIG_HOME}`] : []),
  ].map(shellQuote)
}
