// box keys: lists, creates, limits, rotates and revokes API keys.
import type { Command } from 'commander'
import type { ApiKey } from '../../shared/api/keys.ts'
import {
  createJsonOption,
  createQuietOption,
  type JsonOption,
  type QuietOption,
} from '../arguments/options.ts'
import { loadBoxNames } from '../boxes/box-names.ts'
import type { RunAction, Session } from '../connection/session.ts'
import type { CreateOptions, RemoveOptions, SetOptions } from '../keys/change-keys.ts'
import { loadKeys } from '../keys/find-key.ts'
import { createKeyList } from '../keys/key-list.ts'
import { ACCESS_HELP, addLimitOptions } from '../keys/key-options.ts'
import { addListOptions, type ListOptions } from '../lists/options.ts'
import { printList } from '../lists/print-list.ts'
import { loadMemberNames } from '../members/member-names.ts'

const importChanges = () => import('../keys/change-keys.ts')

export function addKeysCommand(program: Command, runAction: RunAction): void {
  const keys = program
    .command('keys')
    .summary('list, create, limit or revoke API keys')
    .description(
      'Lists your API keys, for an owner those of the workspace. Needs a sign-in with `box login`.',
    )
    .option('-a, --all', 'include revoked keys')
    // An option after a subcommand belongs to the subcommand.
    .enablePositionalOptions()
    .helpCommand(false)
  addListOptions(keys, 'the ids', createKeyList(String, String).filters)
    .addHelpText(
      'after',
      `
Examples:
  box keys
  box keys create ci --expires 30d --read-only
  box keys set ci --expires 90d
  box keys rm ci

ACCESS is what the role of the user allows (all), or the level per area, and the boxes to which the key is limited.`,
    )
    .action((options: ListOptions & { all?: boolean }) => runAction((session) => listKeys(session, options)))
  addCreate(keys, runAction)
  addSet(keys, runAction)
  addRotate(keys, runAction)
  addRemove(keys, runAction)
}

async function listKeys(
  { client, signal }: Session,
  options: ListOptions & { all?: boolean },
): Promise<number> {
  const getUserName = await loadMemberNames(client)
  const getBoxName = await loadBoxNames(client)
  const list = createKeyList((id) => (id === null ? 'none' : getUserName(id)), getBoxName)
  const load = async () => {
    const rows = await loadKeys(client, { revoked: options.all ?? false })
    return { rows, toJson: (shown: readonly ApiKey[]) => ({ keys: shown }) }
  }
  return printList(list, load, options, signal)
}

function addCreate(keys: Command, runAction: RunAction): void {
  const create = keys
    .command('create')
    .alias('add')
    .summary('create an API key')
    .description(
      'Creates an API key that acts as you, and prints its secret on stdout. The secret cannot be shown again.',
    )
    .argument('<name>', 'what the key is for, such as ci')
  addLimitOptions(create, ACCESS_HELP)
    .option('--no-user', 'a key with no user, which stays when you leave the workspace; for owners')
    .addOption(createQuietOption())
    .addOption(createJsonOption())
    .addHelpText(
      'after',
      `
Examples:
  box keys create ci --expires 30d
  box keys create agent --box fig --access boxes=run
  BOXWOOD_API_KEY=$(box keys create -q backup --read-only)

Each level of boxes includes those before it:
  read    read boxes, their files, output and metrics
  run     also wake boxes, run commands, terminals and prompts, and write files
  write   also create, suspend, resize, move and delete boxes and snapshots, and change settings;
          read and delete the command history
A key without --access may do all of this: give a program that works in a box boxes=run.`,
    )
    .action((name: string, options: CreateOptions) =>
      runAction(async (session) => (await importChanges()).createKey(session, name, options)),
    )
}

function addSet(keys: Command, runAction: RunAction): void {
  const set = keys
    .command('set')
    .summary('change the name or the limits of an API key')
    .description('Changes the name or the limits of an API key. The secret stays the same.')
    .argument('<key>', 'the name or id of the key')
    .option('--name <name>', 'the new name')
  addLimitOptions(set, `${ACCESS_HELP}; all removes the limit`)
    .option('--all-boxes', 'remove the limit to boxes')
    .addOption(createQuietOption())
    .addOption(createJsonOption())
    .addHelpText('after', '\nExamples:\n  box keys set ci --expires never --access all')
    .action((key: string, options: SetOptions) =>
      runAction(async (session) => (await importChanges()).setKey(session, key, options)),
    )
}

function addRotate(keys: Command, runAction: RunAction): void {
  keys
    .command('rotate')
    .summary('replace the secret of an API key')
    .description(
      'Replaces the secret of an API key, and prints the new one on stdout. The old one stops working.',
    )
    .argument('<key>', 'the name or id of the key')
    .addOption(createQuietOption())
    .addOption(createJsonOption())
    .action((key: string, options: JsonOption & QuietOption) =>
      runAction(async (session) => (await importChanges()).rotateKey(session, key, options)),
    )
}

function addRemove(keys: Command, runAction: RunAction): void {
  keys
    .command('rm')
    .aliases(['revoke', 'delete', 'remove'])
    .summary('revoke API keys')
    .description('Revokes API keys: their next request is refused. On a terminal, asks for confirmation.')
    .argument('<key...>', 'names or ids of keys')
    .option('-y, --yes', 'do not ask for confirmation')
    .option('-f, --force', 'do not ask for confirmation, and ignore keys that do not exist')
    .addOption(createQuietOption())
    .addOption(createJsonOption())
    .action((names: string[], options: RemoveOptions) =>
      runAction(async (session) => (await importChanges()).revokeKeys(session, names, options)),
    )
}
