// Downloads and removes images.
import { readText } from '../../client/http/calls.ts'
import { ConnectionError } from '../../client/http/errors.ts'
import { readEvents, type ServerEvent } from '../../client/http/events.ts'
import type { OpenResponse } from '../../client/http/transport.ts'
import type { Image, PullProgress } from '../../shared/api/images.ts'
import type { JsonOption, QuietOption } from '../arguments/options.ts'
import { createApiError } from '../connection/api-errors.ts'
import { addHints, IMAGE_HINTS } from '../connection/refusals.ts'
import {
  checkFields,
  type FieldValidators,
  invalidDataError,
  isOffset,
  isString,
  parseObject,
} from '../connection/server-data.ts'
import type { Session } from '../connection/session.ts'
import { startBatch } from '../output/batch.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { formatBytes } from '../output/format.ts'
import { printJson, printStderr, sanitize } from '../output/print.ts'
import { formatDigest } from './image-list.ts'
import { createPullDisplay, type PullDisplay } from './pull-progress.ts'

export type RegionOption = { region?: string }
export type Output = JsonOption & QuietOption & RegionOption

type PullEvent =
  | { name: 'progress'; data: PullProgress }
  | { name: 'done'; data: { image: Image } }
  | { name: 'error'; data: { code: string; message: string } }

const isLayer = (value: unknown): boolean => {
  if (typeof value !== 'object' || value === null) return false
  const { id, status, currentBytes, totalBytes } = value as Record<string, unknown>
  return (
    isString(id) &&
    isString(status) &&
    isOffset(currentBytes) &&
    (totalBytes === null || isOffset(totalBytes))
  )
}

const VALIDATORS: Record<PullEvent['name'], FieldValidators> = {
  progress: { layers: (value) => Array.isArray(value) && value.every(isLayer) },
  done: { image: (value) => typeof value === 'object' && value !== null },
  error: { code: isString, message: isString },
}

/** Returns null for an unknown event: a newer coordinator may send additional events. */
function parseEvent({ event: name = '', data: text }: ServerEvent): PullEvent | null {
  if (!Object.hasOwn(VALIDATORS, name)) return null
  const data = parseObject(text, 'an event')
  checkFields(`the event ${name}`, data, VALIDATORS[name as PullEvent['name']])
  return { name, data } as unknown as PullEvent
}

export async function pullImage(session: Session, image: string, options: Output): Promise<undefined> {
  const { json, quiet, region } = options
  const body = { image, ...(region !== undefined && { region }) }
  const display = await createPullDisplay(Boolean(json || quiet))
  try {
    const response = session.client.openEvents('/images', body)
    const pulled = await readImage(await addHints(response, IMAGE_HINTS), display, session.signal)
    display.stop()
    if (json) printJson(pulled)
    else if (!quiet)
      printStderr(
        `${sanitize(pulled.reference)}: ${formatBytes(pulled.sizeBytes)}, digest ${formatDigest(pulled.digest)}, in ${sanitize(pulled.region)}`,
      )
    return undefined
  } catch (error) {
    if (session.signal.aborted || !(error instanceof ConnectionError)) throw error
    throw new CliError(
      EXIT.unreachable,
      'The connection to the coordinator was lost. Run the command again: it continues the download.',
      { cause: error },
    )
  } finally {
    display.stop()
  }
}

/** @throws CliError */
async function readImage(response: OpenResponse, display: PullDisplay, signal: AbortSignal): Promise<Image> {
  if (response.headers.get('content-type')?.startsWith('application/json'))
    return (JSON.parse(await readText(response)) as { image: Image }).image
  for await (const message of readEvents(response, signal)) {
    const event = parseEvent(message)
    if (event === null) continue
    if (event.name === 'progress') display.update(event.data)
    else if (event.name === 'done') return event.data.image
    else throw createApiError(event.data.code, event.data.message)
  }
  throw invalidDataError('a download without a result')
}

/** Returns the exit code. */
export async function removeImages(
  { client }: Session,
  references: readonly string[],
  { json, quiet, region }: Output,
): Promise<number> {
  const names = [...new Set(references)]
  const batch = startBatch(names)
  await batch.run(names, async (image) => {
    const query = new URLSearchParams({ image, ...(region !== undefined && { region }) })
    await addHints(client.request('DELETE', `/images?${query}`), {
      ...IMAGE_HINTS,
      image_not_found: '`box images` lists the images of each region.',
      image_in_use: `\`box ls --filter image=${sanitize(image)}\` lists the boxes that have it.`,
    })
    if (json) printJson({ image, removed: true })
    else if (!quiet) printStderr(`${sanitize(image)}: removed`)
  })
  return batch.exitCode
}
