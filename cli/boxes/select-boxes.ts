// Finds the boxes that a command applies to: those of the given names, or all with --all or --label.
import type { Command } from 'commander'
import type { Box } from '../../shared/api/boxes.ts'
import type { LabelSelector } from '../../shared/labels.ts'
import { boxCommand } from '../command-name.ts'
import type { Client } from '../connection/client.ts'
import type { Session } from '../connection/session.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { createLabelOption, hasLabels, toLabelQuery } from './labels.ts'

export type SelectionOptions = { all?: boolean; label?: LabelSelector[] }

/** @param verb such as "stop" @param all the boxes of --all, such as "running boxes" */
export const addSelectionOptions = (command: Command, verb: string, all: string): Command =>
  command
    .option('-a, --all', `${verb} all ${all}`)
    .addOption(createLabelOption(`${verb} the ${all} with this label`))

/** The typed option that selects boxes; null: boxes are selected by their names. */
export const getSelectionOption = ({ all, label }: SelectionOptions): '--all' | '--label' | null =>
  label !== undefined ? '--label' : all ? '--all' : null

/** The live boxes with all labels of --label. */
export async function loadSelectedBoxes(client: Client, { label = [] }: SelectionOptions): Promise<Box[]> {
  const { boxes } = await client.request<{ boxes: Box[] }>('GET', `/boxes?live=1${toLabelQuery(label)}`)
  return boxes.filter((box) => hasLabels(box, label))
}

/**
 * The boxes of `names`, or with --all or --label those for which `appliesTo` is true.
 * @throws CliError when both or neither are given
 */
export async function selectBoxes(
  { client }: Session,
  names: string[],
  { appliesTo, ...options }: SelectionOptions & { appliesTo(box: Box): boolean },
  run: (names: string[], find: (name: string) => Promise<Box>) => Promise<Box[]>,
): Promise<Box[]> {
  const option = getSelectionOption(options)
  if (option === null) return findBoxes(client, names, run)
  if (names.length > 0) throw new CliError(EXIT.usage, `${option} cannot be combined with names of boxes.`)
  return (await loadSelectedBoxes(client, options)).filter(appliesTo)
}

/** Each box once. @throws CliError without names */
export async function findBoxes(
  client: Client,
  names: string[],
  run: (names: string[], find: (name: string) => Promise<Box>) => Promise<Box[]>,
): Promise<Box[]> {
  if (names.length === 0)
    throw new CliError(EXIT.usage, `The name of a box is missing. \`${boxCommand()} ls\` lists the boxes.`)
  const boxes = await run([...new Set(names)], client.findBox)
  return boxes.filter(({ id }, index) => boxes.findIndex((box) => box.id === id) === index)
}
