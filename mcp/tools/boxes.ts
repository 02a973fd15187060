// Boxes: listed, looked up and created.
import { z } from 'zod'
import type { Box, BoxData } from '../../client/boxes/box.ts'
import type { BoxDetail } from '../../client/generated/types.ts'
import { BoxwoodError, NotFoundError } from '../../client/http/errors.ts'
import type { Call, Context } from '../context.ts'
import { cleanLine } from '../text/clean.ts'
import { allows, defineTool, type ToolFactory } from '../tool.ts'
import { waitAtMost } from '../wait-at-most.ts'
import { omitUndefined, requestIdField, toIdempotencyKey } from './fields.ts'

/** Boxes of an answer. */
const PAGE = 50
/** Of the newest events, and of the running commands. */
const DETAILS = 10
/** How long a box may take to list its commands and ports. */
const RESPONSE_MS = 2_000

export const boxSchema = z.object({
  name: z.string(),
  id: z.string(),
  state: z.string(),
  tier: z.string(),
  image: z.string().nullable(),
  createdAt: z.string(),
})

export const toBoxData = ({ hostname, id, observedState, tier, image, createdAt }: BoxData) => ({
  name: hostname,
  id,
  state: observedState,
  tier,
  image: image === null ? null : cleanLine(image, 200),
  createdAt,
})

const formatBox = (box: z.infer<typeof boxSchema>): string =>
  [box.name, box.state, box.tier, ...(box.image === null ? [] : [box.image])].join(', ')

const listInput = z.strictObject({
  box: z.string().min(1).optional().describe('Name or id: all about this box'),
  label: z.string().min(1).optional().describe('Only boxes with it: key or key=value'),
  cursor: z.string().optional().describe('nextCursor of the last answer'),
})

export const createListBoxes: ToolFactory = (grants) =>
  allows(grants, 'read')
    ? defineTool({
        name: 'list_boxes',
        title: 'List the boxes',
        description:
          'Lists the boxes (Linux machines) with their states, newest first. With a name: all about one box, with its running commands, listening ports and last events.',
        inputSchema: listInput,
        outputSchema: z.object({
          boxes: z.array(boxSchema),
          nextCursor: z.string().nullable(),
          details: z.looseObject({}).optional(),
        }),
        annotations: {
          readOnlyHint: true,
          destructiveHint: false,
          idempotentHint: true,
          openWorldHint: false,
        },
        async run(context, input, call) {
          if (input.box !== undefined)
            return describeBox(await context.findBox(input.box, call), context, call)
          const { boxes, nextCursor } = await loadBoxes(context, input, call)
          const lines = boxes.map(formatBox)
          if (lines.length === 0)
            lines.push(
              grants.canCreate ? 'There are no boxes. Create one with create_box.' : 'There are no boxes.',
            )
          if (nextCursor !== null) lines.push(`More boxes follow: call list_boxes with cursor ${nextCursor}.`)
          return { text: lines.join('\n'), data: { boxes, nextCursor } }
        },
      })
    : null

async function loadBoxes(
  { boxwood, options }: Context,
  { label, cursor }: z.infer<typeof listInput>,
  { signal }: Call,
) {
  if (options.boxes !== undefined) {
    const found = await Promise.all(
      options.boxes.map((name) =>
        boxwood.boxes.get(name, { signal }).catch((error: unknown) => {
          if (error instanceof NotFoundError) return null
          throw error
        }),
      ),
    )
    const boxes = found.filter((box) => box !== null && (label === undefined || hasLabel(box, label)))
    return { boxes: boxes.map((box) => toBoxData((box as Box).data)), nextCursor: null }
  }
  const page = await boxwood.routes.boxes.list(
    {
      live: true,
      limit: PAGE,
      ...(label !== undefined && { label: [label] }),
      ...(cursor !== undefined && { before: cursor }),
    },
    { signal },
  )
  return { boxes: page.boxes.map((box) => toBoxData(box as BoxData)), nextCursor: page.nextBefore ?? null }
}

function hasLabel({ data: { labels } }: Box, label: string): boolean {
  const [key = '', ...value] = label.split('=')
  return key in labels && (value.length === 0 || labels[key] === value.join('='))
}

async function describeBox(box: Box, { boxwood }: Context, { signal }: Call) {
  const detail = await boxwood.routes.boxes.get(box.id, { signal })
  const isRunning = detail.box.observedState === 'running' && detail.state.connected
  // A request for a box that is not running would wake it, or fail.
  const [commands, ports] = isRunning
    ? await Promise.all([
        loadCommands(box, boxwood, signal).catch(toUnknown),
        loadPorts(box, signal).catch(toUnknown),
      ])
    : [[], { listening: [], links: [] }]
  const details = { ...toDetails(detail), commands, ...ports }
  const data = toBoxData(detail.box)
  return {
    text: `${formatBox(data)}\n${JSON.stringify(details)}`,
    data: { boxes: [data], nextCursor: null, details },
  }
}

/** Without the variables of the box: their values may be secrets. */
function toDetails({ box, vitals, machine, size, events, job }: BoxDetail) {
  const { labels, region, isolation, restricted, autoPauseMin, deleteAt } = box
  return {
    labels,
    region,
    isolation,
    restricted,
    autoPauseMin,
    deleteAt,
    size,
    usage:
      vitals === null
        ? null
        : { cpuPct: vitals.cpu_pct, memoryPct: vitals.mem_pct, diskPct: vitals.disk_pct },
    machine:
      machine === null ? null : cleanLine(`${machine.os}, ${machine.kernel}, ${machine.cpuModel}`, 200),
    job: job === null ? null : cleanLine(`${job.op}, attempt ${job.attempt}: ${job.lastError ?? job.step}`),
    events: events
      .slice(0, DETAILS)
      .map(({ at, fromState, toState, reason }) =>
        cleanLine(`${at} ${fromState ?? 'new'} → ${toState}: ${reason}`, 300),
      ),
  }
}

/** A box that does not respond has details too. */
function toUnknown(error: unknown): null {
  if (error instanceof BoxwoodError) return null
  throw error
}

async function loadCommands(box: Box, { routes }: Context['boxwood'], signal: AbortSignal) {
  const { processes } = await routes.processes.list(box.id, { signal, timeoutMs: RESPONSE_MS })
  return processes
    .filter(({ running }) => running)
    .slice(0, DETAILS)
    .map(({ processId, startedAt, command }) => ({ processId, startedAt, command: cleanLine(command, 200) }))
}

async function loadPorts(box: Box, signal: AbortSignal) {
  const { listening, shares } = await box.ports.list({ signal, timeoutMs: RESPONSE_MS })
  return {
    listening: (listening?.ports ?? []).slice(0, PAGE).map(({ port }) => port),
    links: shares.slice(0, PAGE).map(({ port, access, origin }) => ({ port, access, origin })),
  }
}

export const createCreateBox: ToolFactory = (grants) =>
  grants.canCreate
    ? defineTool({
        name: 'create_box',
        title: 'Create a box',
        description:
          'Creates a box, and waits up to 45 seconds until it runs. A new image may take longer: then its state is in list_boxes.',
        inputSchema: z.strictObject({
          name: z.string().min(1).optional().describe('Default: a fruit name'),
          tier: z
            .enum(['nano', 'micro', 'lite', 'flow', 'pro', 'max', 'ultra'])
            .optional()
            .describe('The size. Default: lite'),
          image: z.string().optional().describe('Root file system, such as debian:12'),
          environment: z.string().optional().describe('Name of an environment'),
          labels: z.record(z.string(), z.string()).optional(),
          deleteAfterMinutes: z
            .number()
            .int()
            .min(1)
            .optional()
            .describe('Deletes the box then. Default: never'),
          requestId: requestIdField,
        }),
        outputSchema: boxSchema,
        annotations: {
          readOnlyHint: false,
          destructiveHint: false,
          idempotentHint: false,
          openWorldHint: false,
        },
        async run(context, { requestId, ...request }, { signal }) {
          const { boxwood } = context
          signal.throwIfAborted()
          const { box: created } = await boxwood.routes.boxes.create(
            omitUndefined(request),
            toIdempotencyKey(requestId),
          )
          try {
            const box = await boxwood.boxes.get(created.id)
            const isRunning =
              (await waitAtMost(context.maxWaitMs, signal, (limited) =>
                box.waitUntilRunning({ signal: limited }),
              )) !== null
            const data = toBoxData(box.data)
            const next = isRunning
              ? 'It is ready for run_command.'
              : 'Call list_boxes with its name to see when it runs.'
            return { text: `The box ${data.name} is ${data.state}. ${next}`, data }
          } catch (error) {
            // The client does not know the box, and without a requestId it cannot find it.
            if (signal.aborted && requestId === undefined)
              await boxwood.routes.boxes.delete(created.id).catch(() => undefined)
            throw error
          }
        },
      })
    : null
