// How far a transfer is: a bar on a terminal's stderr, nothing anywhere else.

/** Bytes as a person reads them, to three digits. */
export function formatBytes(bytes: number): string {
  let value = bytes
  for (const unit of ['B', 'KiB', 'MiB']) {
    if (value < 1000) return `${unit === 'B' ? value : value.toPrecision(3)} ${unit}`
    value /= 1024
  }
  return `${value.toPrecision(3)} GiB`
}

const perSecond = (bytes: number, startTime: number): string =>
  `${formatBytes(bytes / Math.max(0.001, (Date.now() - startTime) / 1000))}/s`

type Progress = { add(bytes: number): void; stop(): void }

/** `total` is null where nobody knows it. */
async function openProgress(name: string, total: number | null): Promise<Progress> {
  if (!process.stderr.isTTY) return { add: () => undefined, stop: () => undefined }
  const { SingleBar } = await import('cli-progress')
  const bar = new SingleBar({
    stream: process.stderr,
    hideCursor: true,
    barsize: 24,
    fps: 8,
    // A signal is for the command to handle: it removes what is unfinished.
    gracefulExit: false,
    format: ({ barsize = 24 }, { value, startTime, progress }) => {
      const speed = perSecond(value, startTime)
      if (total === null) return `${name}  ${formatBytes(value)}  ${speed}`
      const part = Math.min(1, progress)
      const line = '█'.repeat(Math.round(part * barsize)).padEnd(barsize, '░')
      const amount = `${formatBytes(value)} of ${formatBytes(total)}`
      return `${name}  ${line}  ${Math.floor(part * 100)}%  ${amount}  ${speed}`
    },
  })
  bar.start(total ?? 0, 0)
  return { add: (bytes) => bar.increment(bytes), stop: () => bar.stop() }
}

/** The same bytes, shown as they pass. */
export async function* metered(
  source: AsyncIterable<Buffer>,
  name: string,
  total: number | null,
): AsyncGenerator<Buffer, void, undefined> {
  const progress = await openProgress(name, total)
  try {
    for await (const chunk of source) {
      progress.add(chunk.length)
      yield chunk
    }
  } finally {
    progress.stop()
  }
}
