// Finds the boxes that a command applies to: those of the given names, or all with --all.
import type { Box } from '../../shared/api/boxes.ts'
import { boxCommand } from '../command-name.ts'
import type { Session } from '../connection/session.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'

/**
 * The boxes of `names`, or all boxes for which `appliesTo` is true.
 * @throws CliError when both or neither are given
 */
export async function selectBoxes(
  { client }: Session,
  names: string[],
  appliesTo: ((box: Box) => boolean) | null,
  run: (names: string[], find: (name: string) => Promise<Box>) => Promise<Box[]>,
): Promise<Box[]> {
  if (appliesTo === null) {
    if (names.length === 0)
      throw new CliError(EXIT.usage, `The name of a box is missing. \`${boxCommand()} ls\` lists the boxes.`)
    const boxes = await run([...new Set(names)], client.findBox)
    return boxes.filter(({ id }, index) => boxes.findIndex((box) => box.id === id) === index)
  }
  if (names.length > 0) throw new CliError(EXIT.usage, '--all cannot be combined with names of boxes.')
  return (await client.request<{ boxes: Box[] }>('GET', '/boxes?live=1')).boxes.filter(appliesTo)
}
