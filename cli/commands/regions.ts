// box regions: lists the regions, and what their boxes can do.
import type { Command } from 'commander'
import type { RegionInfo } from '../../shared/api/images.ts'
import type { RunAction } from '../connection/session.ts'
import { REGION_LIST } from '../images/image-list.ts'
import { loadRegions } from '../images/load-images.ts'
import { addListOptions, type ListOptions } from '../lists/options.ts'
import { printList } from '../lists/print-list.ts'

export function addRegionsCommand(program: Command, runAction: RunAction): void {
  addListOptions(
    program
      .command('regions')
      .summary('list the regions, and what their boxes can do')
      .description(
        'Lists the regions in which boxes can be created. ROOT: the user of a box is root. FREEZE: a suspend keeps the processes ' +
          'in memory. RESIZE: live, or the box restarts. IMAGES: a box can have a root file system of its own.',
      ),
    'the names',
    REGION_LIST.filters,
  )
    .addHelpText(
      'after',
      `
Examples:
  box regions
  box regions -o wide                          also how boxes are isolated
  box regions --filter images=yes              those whose boxes can have an image

The operator selects the regions and their providers: \`box docs engines\`.`,
    )
    .action((options: ListOptions) =>
      runAction(({ client, signal }) => {
        const load = async () => {
          const { regions: rows } = await loadRegions(client)
          return { rows, toJson: (regions: readonly RegionInfo[]) => ({ regions }) }
        }
        return printList(REGION_LIST, load, options, signal)
      }),
    )
}
