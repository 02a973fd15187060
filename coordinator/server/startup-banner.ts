// Formats the text that a start prints on the terminal.

import { describeSignInLink } from '../../shared/coordinator-process.ts'
import { DEFAULT_DATA_DIR, IS_NPM_PACKAGE } from '../base/project-directory.ts'
import { getSettingsFile } from '../base/stored-settings.ts'
import { isWildcard } from '../http/listen.ts'
import { formatEngines } from '../providers/describe-engines.ts'
import { listOccupiedRegions } from '../providers/local/region-directories.ts'
import type { EngineReport } from '../providers/probe-engines.ts'
import type { Coordinator } from './app.ts'
import {
  formatBoxCommand,
  formatBoxName,
  formatPath,
  getStartCommand,
  getUserDirectory,
} from './box-command.ts'

/**
 * Paths and commands can be pasted into a terminal in the directory from which the coordinator was started.
 * @param options.isRemembered the address is that of an earlier start
 * @param options.engines see probeEngines()
 * @param options.link see createDashboardLink(); default: null
 */
export async function createStartupBanner(
  coordinator: Coordinator,
  userDir = getUserDirectory(),
  {
    isRemembered = false,
    engines = [],
    link = null,
  }: { isRemembered?: boolean; engines?: readonly EngineReport[]; link?: string | null } = {},
): Promise<string> {
  const { url, dataDirectory, context } = coordinator
  const { config, urls } = context
  const box = formatBoxName(userDir)
  const worksEverywhere = box !== './box' && dataDirectory.dir === DEFAULT_DATA_DIR
  const engineText = describeEngines(coordinator, engines, userDir)
  const lines = [
    `Boxwood listens on ${urls.public === url ? url : `${url} (for clients: ${urls.public})`}.`,
    ...(isRemembered
      ? [
          `This is the address of the last start with BOXWOOD_LISTEN (${formatPath(getSettingsFile(dataDirectory.dir), userDir)}).`,
        ]
      : []),
    describeMachines(coordinator),
    ...(engineText === '' ? [] : [engineText]),
    ...(link === null ? [] : [describeSignInLink(link)]),
    `The owner's API key is in ${formatPath(dataDirectory.ownerKeyFile, userDir)}.`,
    ...(isWildcard(config.listen.host) && config.publicUrl === null
      ? ['To use it from other machines, set BOXWOOD_PUBLIC_URL to the URL at which they reach it.']
      : []),
    '',
    worksEverywhere ? 'In another terminal:' : 'In another terminal, in this directory:',
    `  ${formatBoxCommand(dataDirectory.dir, userDir)} ${await suggestCommand(coordinator)}`,
    ...(box === 'box' ? [] : ['', formatPathHint(box)]),
  ]
  return `${lines.join('\n')}\n`
}

/** The isolation of boxes, and how many machines wait for one. */
export function describeMachines({ context }: Coordinator): string {
  const waiting = context.describeWarmMachines()
  return `${context.providers.describe()}${waiting === null ? '' : `\n${waiting}`}`
}

/** Empty when there is nothing to say. */
export const describeEngines = (
  { context, dataDirectory }: Coordinator,
  engines: readonly EngineReport[],
  userDir = getUserDirectory(),
): string =>
  formatEngines(engines, {
    regions: context.config.regions,
    occupiedRegions: listOccupiedRegions(dataDirectory.dir),
    startCommand: getStartCommand(userDir),
  })

const formatPathHint = (box: string): string =>
  IS_NPM_PACKAGE
    ? 'To type only `box`, put the bin directory of `npm prefix -g` first on your PATH.'
    : `\`${box} install\` puts \`box\` on your PATH.`

/** The arguments of a `box` command to try. */
export async function suggestCommand({ context, owner }: Coordinator): Promise<string> {
  const boxes = owner ? await context.boxes.list(owner, { live: true }) : []
  const oldest = boxes.findLast(({ observedState }) => observedState !== 'provision_failed')
  return oldest ? `exec ${oldest.hostname} -- uname -a` : 'create'
}
