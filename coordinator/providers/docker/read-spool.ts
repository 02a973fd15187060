// Reads the spool of a stopped box through the engine. The box controls these files: their number and sizes are limited, and only
// regular files are read.
import type { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { parseSegmentName, SPOOL_DIRECTORY } from '../../../shared/report-spool.ts'
import { CONTAINER_PATHS } from '../container/paths.ts'
import { TarReader } from '../container/tar-entries.ts'
import { ignoreStatus } from '../engine-http/errors.ts'
import { MAX_SEGMENT_BYTES, MAX_SPOOL_BYTES, MAX_SPOOL_ENTRIES, type OnSkip } from '../parts/read-spool.ts'
import type { Engine } from './engine.ts'
import { getContainerName } from './names.ts'

/** How long the engine may send nothing. The storage of a segment may take longer. */
const TIMEOUT_MS = 60_000

/** Yields the content of the segments in the order of their names, of each at most the size that the agent writes. */
export async function* readEngineSpool(
  { http }: Engine,
  boxId: string,
  onSkip: OnSkip,
): AsyncGenerator<Buffer, void, undefined> {
  const aborting = new AbortController()
  const response = await http
    .stream({
      method: 'GET',
      path: `/containers/${getContainerName(boxId)}/archive`,
      query: { path: `${CONTAINER_PATHS.state}/${SPOOL_DIRECTORY}` },
      signal: aborting.signal,
      timeoutMs: TIMEOUT_MS,
    })
    .catch(ignoreStatus(404))
  if (response === undefined) return
  const reader = new TarReader(withTimeLimit(response.body, aborting))
  try {
    let remainingBytes = MAX_SPOOL_BYTES
    let count = 0
    // The engine sends the entries in the order of their names.
    for (let entry = await reader.next(); entry !== null; entry = await reader.next()) {
      count += 1
      if (count > MAX_SPOOL_ENTRIES)
        return onSkip(SPOOL_DIRECTORY, `the directory has more than ${MAX_SPOOL_ENTRIES} entries`)
      const name = entry.name.split('/').at(-1) ?? ''
      // The content of a skipped entry is read too, and may have any size.
      remainingBytes -= entry.size
      if (remainingBytes < 0) return onSkip(name, `the spool is larger than ${MAX_SPOOL_BYTES} bytes`)
      if (entry.type !== 'file' || parseSegmentName(name) === null) continue
      if (entry.size > MAX_SEGMENT_BYTES) {
        onSkip(name, `the segment is larger than ${MAX_SEGMENT_BYTES} bytes`)
        continue
      }
      yield await buffer(reader.readContent())
    }
  } finally {
    response.body.on('error', () => {}).destroy()
  }
}

async function* withTimeLimit(body: Readable, aborting: AbortController): AsyncGenerator<Buffer> {
  const chunks = body[Symbol.asyncIterator]()
  for (;;) {
    const timer = setTimeout(
      () => aborting.abort(new Error('The engine does not send the spool.')),
      TIMEOUT_MS,
    )
    const { done, value } = await chunks.next().finally(() => clearTimeout(timer))
    if (done === true) return
    yield value
  }
}
