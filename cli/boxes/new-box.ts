// Waits for a new box, and prints its name: box create, fork and restore.
import type { Command } from 'commander'
import type { Box, BoxDetail } from '../../shared/api/boxes.ts'
import { DEFAULT_TIER, TIER_NAMES } from '../../shared/tiers.ts'
import type { OutputOptions } from '../arguments/options.ts'
import { boxCommand } from '../command-name.ts'
import type { Client } from '../connection/client.ts'
import type { Session } from '../connection/session.ts'
import { findEnvironment, loadEnvironments } from '../environments/find-environment.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { print, printJson, printMessage, printStderr, sanitize } from '../output/print.ts'
import { getProgress } from '../output/status-line.ts'
import { waitForState } from '../wait/wait-for-box.ts'
import { describeTier, isBounded } from './box-size.ts'

export type EnvironmentOption = { environment?: string }
export type NewBoxOptions = OutputOptions & EnvironmentOption & { name?: string; tier?: string }

/** The name of the new box, and the options that create, fork and restore share. @param tier the default */
export const addNewBoxArgument = (command: Command): Command =>
  command
    .argument('[name]', 'name of the new box (default: a fruit name)')
    .option('--name <name>', 'the same as the argument')

export const addTierOption = (command: Command, defaultTier: string = DEFAULT_TIER): Command =>
  command.option(
    '--tier <tier>',
    `size of the box: ${TIER_NAMES.join(', ')} (default: ${defaultTier}); box show lists the enforced limits`,
  )

/** @param defaultEnvironment such as `the default of the workspace` */
export const addEnvironmentOption = (command: Command, defaultEnvironment: string): Command =>
  command.option(
    '--environment <environment>',
    `start with the latest version of this environment, or with none (default: ${defaultEnvironment})`,
  )

/** The field of a request that creates a box. */
export const toEnvironmentField = ({ environment }: EnvironmentOption): { environment?: string | null } =>
  environment === undefined ? {} : { environment: environment === 'none' ? null : environment }

/** The same promise; not_found names the environment, because the source of the box has been found before. */
export const explainEnvironment = <T>(
  client: Client,
  response: Promise<T>,
  { environment }: EnvironmentOption,
): Promise<T> =>
  response.catch(async (error) => {
    if (environment !== undefined && error instanceof CliError && error.code === 'not_found')
      findEnvironment(await loadEnvironments(client).catch(() => Promise.reject(error)), environment)
    throw error
  })

/** @throws CliError when the argument and --name differ */
export function selectName(argument: string | undefined, option: string | undefined): string | undefined {
  if (argument !== undefined && option !== undefined && argument !== option)
    throw new CliError(
      EXIT.usage,
      `Two names were given: '${sanitize(argument)}' and '${sanitize(option)}' (--name). Use one.`,
    )
  return argument ?? option
}

/** Waits until the box is running, unless --no-wait is given, and prints it. @param toJson the JSON result */
export async function finishCreation(
  session: Session,
  createdBox: Box,
  options: NewBoxOptions,
  toJson: (box: Box) => unknown = (box) => box,
): Promise<void> {
  const progress = getProgress(options)
  const box = options.wait ? await waitForState(session, createdBox, 'running', progress) : createdBox
  const { size } =
    options.tier === undefined || progress === 'none'
      ? { size: undefined }
      : await session.client.request<BoxDetail>('GET', `/boxes/${box.id}`)
  if (isBounded(box.tier, size)) printMessage(`${box.hostname} has tier ${describeTier(box.tier, size)}.`)
  if (options.json) printJson(toJson(box))
  else print(box.hostname)
  if (progress !== 'none' && process.stdout.isTTY)
    printStderr(`Run a command on the box: ${boxCommand()} exec ${box.hostname} -- uname -a`)
}
