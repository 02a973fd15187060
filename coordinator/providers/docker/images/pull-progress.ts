// The lines that an engine sends during a download, as the state of each layer.
import type { PullProgress } from '../../../../shared/api/images.ts'

type Layer = PullProgress['layers'][number]

/** A line of POST /images/create. */
export type PullLine = {
  id?: string
  status?: string
  progressDetail?: { current?: number; total?: number } | null
  error?: string
  errorDetail?: { message?: string } | null
}

const STATUSES: Readonly<Record<string, Layer['status']>> = {
  'Pulling fs layer': 'waiting',
  Waiting: 'waiting',
  Retrying: 'waiting',
  Downloading: 'downloading',
  'Verifying Checksum': 'downloading',
  'Download complete': 'downloading',
  Extracting: 'unpacking',
  'Pull complete': 'complete',
  'Already exists': 'complete',
}

export class PullProgressReader {
  readonly #layers = new Map<string, Layer>()
  /** The ids of the layers that the engine has completely. */
  readonly #transferred = new Set<string>()

  /** Returns whether the state has changed. */
  add({ id, status = '', progressDetail }: PullLine): boolean {
    const known = STATUSES[status.replace(/^Retrying .*$/, 'Retrying')]
    if (id === undefined || known === undefined) return false
    const previous = this.#layers.get(id)
    const { current, total = 0 } = progressDetail ?? {}
    // The bytes of unpacking are those of the compressed layer too.
    const totalBytes = total > 0 ? total : (previous?.totalBytes ?? null)
    const isTransferred = status === 'Download complete' || known === 'complete'
    if (isTransferred || known === 'unpacking') this.#transferred.add(id)
    this.#layers.set(id, {
      id,
      status: known,
      currentBytes: isTransferred
        ? (totalBytes ?? previous?.currentBytes ?? 0)
        : (current ?? previous?.currentBytes ?? 0),
      totalBytes,
    })
    return true
  }

  /** Whether the engine has all layers of which it has reported. */
  isTransferred(): boolean {
    return this.#layers.size > 0 && this.#transferred.size === this.#layers.size
  }

  /** Podman does not report the end of each layer. */
  complete(): void {
    for (const [id, layer] of this.#layers)
      this.#layers.set(id, {
        ...layer,
        status: 'complete',
        currentBytes: layer.totalBytes ?? layer.currentBytes,
      })
  }

  read(): PullProgress {
    return { layers: [...this.#layers.values()] }
  }
}
