// box use: lists the profiles, or selects one.
import type { Command } from 'commander'
import { createJsonOption, type JsonOption } from '../arguments/options.ts'
import { getRootUrl } from '../connection/find-coordinator.ts'
import { getProfilePath, type Profile, readProfiles, updateProfiles } from '../connection/profile-file.ts'
import { findProfile, LOCAL } from '../connection/select-profile.ts'
import type { RunLocalAction } from '../connection/session.ts'
import { print, printJson, printMessage, printStderr } from '../output/print.ts'
import { formatTable, getTerminalWidth } from '../output/table.ts'

type Options = JsonOption & { quiet?: boolean }

export function addUseCommand(program: Command, runLocalAction: RunLocalAction): void {
  program
    .command('use')
    .summary('list the profiles, or select one')
    .description(
      'Lists the profiles that `box login` has created, or selects the coordinator that box uses from then on. The profile ' +
        '`local` is the coordinator of a data directory on this machine, which box uses until another profile is selected.',
    )
    .argument('[profile]', 'the profile to use')
    .option('-q, --quiet', 'print only the names')
    .addOption(createJsonOption())
    .addHelpText(
      'after',
      `
Examples:
  box use
  box use boxwood.example.com
  box use local
  box ls --profile boxwood.example.com    for one command

BOXWOOD_URL, BOXWOOD_PROFILE and BOXWOOD_DATA in the environment take precedence over the selected profile.`,
    )
    .action((name: string | undefined, options: Options) =>
      runLocalAction(async () => {
        if (name === undefined) printProfiles(options)
        else useProfile(name, options)
        return undefined
      }),
    )
}

type ProfileSummary = Omit<Profile, 'key' | 'session' | 'url'> & { url: string | null; selected: boolean }

/** The summaries contain no credentials. */
function listProfiles(): ProfileSummary[] {
  const { profiles, selected } = readProfiles(getProfilePath(process.env))
  const local: ProfileSummary = { name: LOCAL, url: null, selected: selected === null }
  const summaries = profiles.map(
    ({ name, url, keyId, keyExpiresAt, sessionExpiresAt, user, workspace }): ProfileSummary => ({
      name,
      url,
      selected: name === (selected ?? LOCAL),
      ...(keyId !== undefined && { keyId }),
      ...(keyExpiresAt !== undefined && { keyExpiresAt }),
      ...(sessionExpiresAt !== undefined && { sessionExpiresAt }),
      ...(user !== undefined && { user }),
      ...(workspace !== undefined && { workspace }),
    }),
  )
  return summaries.some(({ name }) => name === LOCAL) ? summaries : [local, ...summaries]
}

function printProfiles({ json, quiet }: Options): void {
  const profiles = listProfiles()
  if (json) printJson({ profiles })
  else if (quiet) for (const { name } of profiles) print(name)
  else
    print(
      formatTable([['', 'PROFILE', 'URL', 'USER', 'WORKSPACE'], ...profiles.map(toRow)], getTerminalWidth()),
    )
}

const toRow = ({ name, url, user, workspace, selected }: ProfileSummary): string[] => [
  selected ? '*' : '',
  name,
  url === null ? 'the data directory on this machine' : getRootUrl(url),
  user ?? '-',
  workspace ?? '-',
]

/** @throws CliError */
function useProfile(name: string, { json, quiet }: Options): void {
  let profile: Profile | null = null
  updateProfiles(getProfilePath(process.env), (file) => {
    profile = name === LOCAL ? null : findProfile(file, name)
    return { ...file, selected: name === LOCAL ? null : name }
  })
  if (json) printJson(listProfiles().find(({ selected }) => selected))
  else if (!quiet) printStderr(formatSelected(profile))
  for (const variable of ['BOXWOOD_URL', 'BOXWOOD_PROFILE', 'BOXWOOD_DATA'])
    if (process.env[variable]) {
      printMessage(`${variable} is set, and takes precedence over the selected profile.`)
      return
    }
}

const formatSelected = (profile: Profile | null): string =>
  profile === null
    ? 'box uses the coordinator of a data directory on this machine.'
    : `box uses ${profile.name}: ${getRootUrl(profile.url)}.`
