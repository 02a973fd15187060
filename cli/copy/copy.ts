// box cp: copies each source to the destination, and reports the ones that fail.
import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import type { Box } from '../../shared/api/boxes.ts'
import { shellQuote } from '../../shared/shell-quote.ts'
import { boxCommand } from '../command-name.ts'
import type { EdgeClient } from '../connection/client.ts'
import { noSuchBoxError } from '../connection/find-box.ts'
import type { Session } from '../connection/session.ts'
import { isSuspended } from '../output/box-state.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { sanitize } from '../output/print.ts'
import { waitForState } from '../wait/wait-for-box.ts'
import { NOT_A_DIRECTORY } from './box-command.ts'
import { createBoxDirectory, writeToBox } from './box-destination.ts'
import { formatTitle } from './box-scripts.ts'
import { measureBoxSource, openBoxSource } from './box-source.ts'
import { writeLocally } from './local-destination.ts'
import { statIfExists } from './local-files.ts'
import {
  inspectLocalSource,
  type LocalSource,
  openLocalSource,
  openLocalSources,
  openStdin,
} from './local-source.ts'
import { toFsPath } from './path-bytes.ts'
import {
  type BoxPath,
  type CopyPath,
  getLocalName,
  getParent,
  isContentsPath,
  isDirectoryPath,
  joinPath,
  type LocalPath,
} from './paths.ts'
import { createProgress, type Progress } from './progress.ts'
import { createOverlapCheck } from './source-overlaps.ts'

export type CopyOptions = { quiet?: boolean; mkpath?: boolean }

/** `path` is the copy's real path on a box, or its path on this machine; null on stdout. */
export type Copied = { source: string; path: string | null }
export type Failed = { source: string; error: CliError }
export type CopyResult = { copied: Copied[]; failed: Failed[] }

type CopyRequest = { sources: CopyPath[]; destination: CopyPath; options: CopyOptions }

type Copy = CopyRequest & {
  session: Session
  progress: Progress
  getEdge(path: BoxPath): Promise<EdgeClient>
  isSeveral: boolean
}

/** Throws the error of a single source. The failures of several sources are in the result. */
export async function copy(session: Session, request: CopyRequest): Promise<CopyResult> {
  const isSeveral = request.sources.length > 1
  checkCombination(request)
  const progress = await createProgress(
    request.options.quiet === true || request.destination.type === 'stdio',
  )
  const context: Copy = { ...request, session, progress, getEdge: createEdgeCache(session), isSeveral }
  const result: CopyResult = { copied: [], failed: [] }
  const attempt = async (sources: readonly CopyPath[], action: () => Promise<Copied[]>) => {
    try {
      result.copied.push(...(await action()))
    } catch (error) {
      session.signal.throwIfAborted()
      if (!isSeveral || !(error instanceof CliError) || isFatal(error)) throw error
      for (const { text } of sources) result.failed.push({ source: text, error })
      progress.print(error.message)
    }
  }
  try {
    await prepareDestination(context)
    const { local, others } = await inspectSources(context, attempt)
    await measureBoxSources(context, others)
    if (local.length > 1)
      await attempt(
        local.map(({ from }) => from),
        () => copyTogether(context, local),
      )
    else for (const source of local) await attempt([source.from], () => copyLocal(context, source))
    for (const source of others)
      if (source.type === 'box') await attempt([source], () => copyFromBox(context, source))
      else if (source.type === 'stdio') await attempt([source], () => copyStdin(context, source))
    return result
  } finally {
    progress.stop()
  }
}

/** No other source can be copied either. */
const isFatal = ({ code, exitCode }: CliError): boolean =>
  code === NOT_A_DIRECTORY || exitCode === EXIT.unreachable || exitCode === EXIT.notAuthenticated

function checkCombination({ sources, destination, options }: CopyRequest): void {
  const fail = (message: string): never => {
    throw new CliError(EXIT.usage, message)
  }
  const hasLocal = sources.some(({ type }) => type !== 'box')
  if (hasLocal && destination.type !== 'box')
    fail('Either the source or the destination must be on a box: BOX:PATH, such as fig:notes.md.')
  if (sources.length > 1 && (destination.type === 'stdio' || sources.some(({ type }) => type === 'stdio')))
    fail('stdin and stdout cannot be combined with several sources.')
  if (sources[0]?.type === 'stdio' && destination.type === 'box' && isDirectoryPath(destination.path))
    fail('stdin has no file name. Add one to the destination: BOX:PATH/FILE.')
  if (options.mkpath && destination.type === 'stdio') fail('--mkpath needs a destination with a path.')
}

/** One client, and so one connection, per box. */
function createEdgeCache(session: Session): Copy['getEdge'] {
  const edges = new Map<string, Promise<EdgeClient>>()
  return async ({ boxName, text }) => {
    const pending = edges.get(boxName) ?? openEdge(session, boxName)
    edges.set(boxName, pending)
    const edge = await pending
    if (edge.hostname !== null) return edge
    const { message, exitCode, code } = edge.noSuchBox ?? noSuchBoxError(boxName)
    const hint = existsSync(text) ? ` For the file on this machine, write ./${sanitize(text)}.` : ''
    throw new CliError(exitCode, message + hint, { code: code ?? '' })
  }
}

/** The file routes do not wake a suspended box. */
async function openEdge(session: Session, boxName: string): Promise<EdgeClient> {
  const edge = await session.client.createEdgeClient(boxName)
  if (edge.observedState !== null && isSuspended(edge.observedState)) {
    const { box } = await session.client.request<{ box: Box }>('POST', `/boxes/${edge.boxId}/wake`)
    await waitForState(session, box, 'running', 'none')
  }
  return edge
}

/** Finds the boxes, creates missing directories for --mkpath, and checks a local destination of several sources. */
async function prepareDestination(context: Copy): Promise<void> {
  const { destination, options, isSeveral, getEdge } = context
  if (destination.type === 'stdio') return
  const { path } = destination
  const directory = isSeveral || isDirectoryPath(path) ? path : getParent(path)
  if (destination.type === 'box') {
    const edge = await getEdge(destination)
    await rejectSameBox(context, edge)
    if (options.mkpath && directory !== '') await createBoxDirectory(edge, getTitle(context), directory)
    return
  }
  if (options.mkpath && directory !== '') await mkdir(toFsPath(directory), { recursive: true })
  if (!isSeveral) return
  const stats = await statIfExists(path)
  if (stats?.isDirectory()) return
  const problem =
    stats === null
      ? ': no such directory on this machine. --mkpath creates it.'
      : ' is not a directory on this machine.'
  throw new CliError(EXIT.notFound, `${sanitize(path)}${problem}`, { code: NOT_A_DIRECTORY })
}

/** A copy through this machine would read a directory while it grows. */
async function rejectSameBox({ sources, destination, getEdge }: Copy, target: EdgeClient): Promise<void> {
  for (const source of sources) {
    if (source.type !== 'box' || destination.type !== 'box') continue
    const edge = await getEdge(source).catch(() => null)
    if (edge?.boxId !== target.boxId) continue
    const args = [source.path, destination.path].map((path) => shellQuote(path === '' ? '.' : path))
    throw new CliError(
      EXIT.usage,
      `${sanitize(source.text)} and ${sanitize(destination.text)} are on the same box. Copy there: ` +
        `${boxCommand()} exec ${sanitize(source.boxName)} -- cp -a ${sanitize(args.join(' '))}`,
    )
  }
}

type Attempt = (sources: readonly CopyPath[], action: () => Promise<Copied[]>) => Promise<void>
type Inspected = { from: LocalPath; source: LocalSource }
type Sources = { local: Inspected[]; others: Exclude<CopyPath, LocalPath>[] }

/** Refuses sources that are missing here, and those whose copy would replace that of an earlier source. */
async function inspectSources(context: Copy, attempt: Attempt): Promise<Sources> {
  const sources: Sources = { local: [], others: [] }
  const overlaps = createOverlapCheck()
  for (const from of context.sources)
    await attempt([from], async () => {
      if (from.type === 'local') {
        const source = await inspectLocalSource(from.path, context.progress)
        if (context.isSeveral) await overlaps.addLocal(from)
        addTotals(context, source)
        sources.local.push({ from, source })
      } else {
        if (context.isSeveral && from.type === 'box')
          await overlaps.addBox(from, (await context.getEdge(from)).hostname ?? from.boxName)
        sources.others.push(from)
      }
      return []
    })
  return sources
}

function addTotals({ progress, isSeveral }: Copy, { path, totals }: LocalSource): void {
  if (totals === null) progress.addUnknownTotal()
  else progress.addTotal(totals)
  // A pipe has no size, which an archive needs.
  if (isSeveral && totals === null)
    throw new CliError(EXIT.failed, `${sanitize(path)}: a pipe must be the only source.`)
}

/** Measures the total of several sources. A single one reports its size when it is opened. */
async function measureBoxSources(
  { isSeveral, progress, getEdge }: Copy,
  sources: Sources['others'],
): Promise<void> {
  if (!isSeveral || !progress.isShown) return
  for (const source of sources) {
    if (source.type !== 'box') continue
    // The copy reports the error.
    const totals = await getEdge(source)
      .then((edge) => measureBoxSource(edge, source.path))
      .catch(() => null)
    if (totals === null) progress.addUnknownTotal()
    else progress.addTotal(totals)
  }
}

async function copyLocal(context: Copy, { from, source }: Inspected): Promise<Copied[]> {
  context.progress.setLabel(getLocalName(from.path))
  return [{ source: from.text, path: await write(context, await openLocalSource(source)) }]
}

/** Several sources as one archive: one request, instead of one for each file. */
async function copyTogether(context: Copy, sources: readonly Inspected[]): Promise<Copied[]> {
  context.progress.setLabel(`${sources.length} sources`)
  const directory = await write(context, openLocalSources(sources.map(({ source }) => source)))
  return sources.map(({ from }) => ({
    source: from.text,
    path: isContentsPath(from.path) ? directory : joinPath(directory, getLocalName(from.path)),
  }))
}

async function copyStdin(context: Copy, { text }: CopyPath): Promise<Copied[]> {
  context.progress.setLabel('stdin')
  context.progress.addUnknownTotal()
  return [{ source: text, path: await write(context, openStdin()) }]
}

async function copyFromBox(context: Copy, from: BoxPath): Promise<Copied[]> {
  const { session, progress, destination, isSeveral, getEdge } = context
  const edge = await getEdge(from)
  const { content, totals, realPath, close } = await openBoxSource(
    { edge, signal: session.signal, progress },
    from.path,
    getTitle(context),
  )
  try {
    progress.setLabel(content.name || from.text)
    if (!isSeveral) {
      if (totals === null) progress.addUnknownTotal()
      else progress.addTotal(totals)
    }
    if (destination.type !== 'stdio')
      return [{ source: realPath ?? from.path, path: await write(context, content) }]
    const bytes = content.type === 'file' ? await content.open() : content.archive
    await pipeline(bytes, process.stdout, { signal: session.signal, end: false })
    return []
  } catch (error) {
    throw session.signal.aborted ? session.signal.reason : error
  } finally {
    close()
  }
}

async function write(context: Copy, content: Parameters<typeof writeToBox>[1]): Promise<string> {
  const { session, progress, destination, isSeveral, getEdge } = context
  const { signal } = session
  if (destination.type !== 'box')
    return writeLocally(content, destination.type === 'local' ? destination.path : '', { progress, signal })
  const edge = await getEdge(destination)
  const { path } = destination
  return writeToBox(
    { edge, signal, progress, path, mustBeDirectory: isSeveral, title: getTitle(context) },
    content,
  )
}

const getTitle = ({ sources, destination }: Copy): string =>
  formatTitle([...sources, destination].map(({ text }) => text))
