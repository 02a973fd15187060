// Options that all list commands share.
import { type Command, Option } from 'commander'
import { createJsonOption, FilterOption, type JsonOption } from '../arguments/options.ts'
import { createFilterParser, type Filters, type FilterValues } from './filters.ts'

const FORMATS = ['table', 'wide', 'json', 'name'] as const
export type Format = (typeof FORMATS)[number]

export type ListOptions = JsonOption & {
  output?: Format
  quiet?: boolean
  header: boolean
  filter?: FilterValues
  watch?: boolean
}

/** @param names what -q prints, such as "the ids" @param hasWatch false for a list that cannot change */
export function addListOptions(
  command: Command,
  names: string,
  filters: Filters<never>,
  { hasWatch = true } = {},
): Command {
  command
    .addOption(
      new Option('-o, --output <format>', `name prints only ${names}; wide adds columns`).choices(FORMATS),
    )
    .addOption(createJsonOption('short for -o json').conflicts('output'))
    .addOption(new Option('-q, --quiet', 'short for -o name').conflicts(['json', 'output']))
    .addOption(new FilterOption(Object.keys(filters)).argParser(createFilterParser(filters)))
  if (hasWatch) command.option('-w, --watch', 'show changes until Ctrl-C')
  return command.option('--no-header', 'omit the header of the table')
}

export function getFormat({ output, json, quiet }: ListOptions): Format {
  if (quiet) return 'name'
  return json ? 'json' : (output ?? 'table')
}
