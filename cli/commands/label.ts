// box label: sets, removes and prints the labels of boxes.
import type { Command } from 'commander'
import type { Box, PatchBoxRequest } from '../../shared/api/boxes.ts'
import {
  createJsonOption,
  createQuietOption,
  type JsonOption,
  type QuietOption,
} from '../arguments/options.ts'
import { formatLabels, parseLabelWords } from '../boxes/labels.ts'
import { findBoxes } from '../boxes/select-boxes.ts'
import type { RunAction, Session } from '../connection/session.ts'
import { startBatch } from '../output/batch.ts'
import { print, printJson, printStderr, sanitize } from '../output/print.ts'

type Options = JsonOption & QuietOption

export function addLabelCommand(program: Command, runAction: RunAction): void {
  program
    .command('label')
    .summary('set or remove labels of boxes')
    .description(
      'Sets labels of boxes, and removes those with a hyphen after the key. Other labels stay. Without a change, prints the labels. ' +
        'Labels have no effect on a box: other commands select boxes by them.',
    )
    .argument('<name...>', 'names or ids of boxes, then labels: key=value sets one, key- removes it')
    .usage('[options] <name...> [key=value...] [key-...]')
    .addOption(createQuietOption())
    .addOption(createJsonOption())
    .addHelpText(
      'after',
      `
Examples:
  box label fig team=web stage=test
  box label fig plum stage-                   removes the label stage
  box label fig                               prints the labels
  box ls --label team=web
  box exec --label team=web -- git pull
  box stop --label stage=test

A key has 1 to 63 lowercase letters, digits and any of ._/-. A value has at most 63 characters, and may be empty. A box has at
most 32 labels. With several boxes, each one is tried; the exit code is that of the first failure.`,
    )
    .action((words: string[], options: Options) =>
      runAction((session) => changeLabels(session, words, options)),
    )
}

/** Returns the exit code. */
async function changeLabels(session: Session, words: string[], options: Options): Promise<number> {
  const { names, changes } = parseLabelWords(words)
  const isChanged = Object.keys(changes).length > 0
  const batch = startBatch(names)
  const boxes = await findBoxes(session.client, names, batch.run)
  await batch.run(boxes, async (found) => {
    if (!isChanged) return printLabels(found, options, boxes.length > 1)
    const request: PatchBoxRequest = { labels: changes }
    const { box } = await session.client.request<{ box: Box }>('PATCH', `/boxes/${found.id}`, request)
    if (options.json) printJson(box)
    else if (!options.quiet) printStderr(`${box.hostname}: ${sanitize(formatAll(box))}`)
  })
  return batch.exitCode
}

const formatAll = ({ labels }: Box): string => formatLabels(labels).join(', ') || 'no labels'

function printLabels(box: Box, { json }: Options, isNamed: boolean): void {
  if (json) printJson(box.labels ?? {})
  else
    for (const label of formatLabels(box.labels))
      print(sanitize(`${isNamed ? `${box.hostname}: ` : ''}${label}`))
}
