// The progress bar of `box cp`, on stderr. Shown only if stderr is a terminal.

/** Formats with three significant digits, such as 1.95 MiB; below 1000 bytes exactly. */
export function formatBytes(bytes: number): string {
  let value = bytes
  for (const unit of ['B', 'KiB', 'MiB']) {
    if (value < 1000) return `${unit === 'B' ? value : value.toPrecision(3)} ${unit}`
    value /= 1024
  }
  return `${value.toPrecision(3)} GiB`
}

const formatSpeed = (bytes: number, startTime: number): string =>
  `${formatBytes(bytes / Math.max(0.001, (Date.now() - startTime) / 1000))}/s`

type ProgressBar = { add(bytes: number): void; stop(): void }

/** @param total in bytes; null if unknown */
async function startProgressBar(label: string, total: number | null): Promise<ProgressBar> {
  if (!process.stderr.isTTY) return { add: () => undefined, stop: () => undefined }
  const { SingleBar } = await import('cli-progress')
  const bar = new SingleBar({
    stream: process.stderr,
    hideCursor: true,
    barsize: 24,
    fps: 8,
    // The library's own signal handler would exit before the command has removed its partial files.
    gracefulExit: false,
    format: ({ barsize = 24 }, { value, startTime, progress }) => {
      const speed = formatSpeed(value, startTime)
      if (total === null) return `${label}  ${formatBytes(value)}  ${speed}`
      const fraction = Math.min(1, progress)
      const blocks = '█'.repeat(Math.round(fraction * barsize)).padEnd(barsize, '░')
      const amount = `${formatBytes(value)} of ${formatBytes(total)}`
      return `${label}  ${blocks}  ${Math.floor(fraction * 100)}%  ${amount}  ${speed}`
    },
  })
  bar.start(total ?? 0, 0)
  return { add: (bytes) => bar.increment(bytes), stop: () => bar.stop() }
}

/** Yields the chunks of `source` unchanged and shows their number of bytes. @param total in bytes; null if unknown */
export async function* withProgressBar(
  source: AsyncIterable<Buffer>,
  label: string,
  total: number | null,
): AsyncGenerator<Buffer, void, undefined> {
  const bar = await startProgressBar(label, total)
  try {
    for await (const chunk of source) {
      bar.add(chunk.length)
      yield chunk
    }
  } finally {
    bar.stop()
  }
}
