// Whether a disk has space for images. The disk monitor suspends boxes when less than 5 % are free, so a download must end before.
import { ApiError } from '../../shared/errors.ts'
import type { Provider } from '../providers/provider.ts'

/** Part of the disk. */
const MIN_FREE = 0.1

/** false: there is space, or the disk is not on this machine. */
export async function isDiskLow({ sharedDisk }: Pick<Provider, 'sharedDisk'>): Promise<boolean> {
  if (sharedDisk === undefined) return false
  const { bytes, inodes } = await sharedDisk.readSpace()
  return [bytes, inodes].some((space) => space !== null && space.free < space.total * MIN_FREE)
}

export const createDiskLowError = (): ApiError =>
  new ApiError(
    'image_pull_failed',
    'The disk of the region has less than 10 % free, so no image is downloaded. Ask the operator to free space, or remove images with `box images rm`.',
  )

const CHECK_INTERVAL_MS = 2_000

/**
 * Returns a function that is called often, and calls `onLow` once when the disk is low.
 * @param now milliseconds
 */
export function createDiskWatch(
  provider: Pick<Provider, 'sharedDisk'>,
  now: () => number,
  onLow: () => void,
) {
  let checkedAt = now()
  return () => {
    if (now() - checkedAt < CHECK_INTERVAL_MS) return
    checkedAt = now()
    isDiskLow(provider).then(
      (isLow) => isLow && onLow(),
      // The next check may succeed. The engine itself fails on a full disk.
      () => undefined,
    )
  }
}
