// Reads images and regions from the coordinator.
import type { Image, ImageList, RegionList } from '../../shared/api/images.ts'
import type { Client } from '../connection/client.ts'
import type { Loaded } from '../lists/list.ts'
import { sanitize } from '../output/print.ts'

export const loadImages = (client: Client, region?: string): Promise<ImageList> =>
  client.request<ImageList>(
    'GET',
    region === undefined ? '/images' : `/images?${new URLSearchParams({ region })}`,
  )

export const loadRegions = (client: Client): Promise<RegionList> => client.request('GET', '/regions')

/** An engine that does not answer is a note: the images of the other regions are shown. */
export async function loadImageRows(client: Client, region?: string): Promise<Loaded<Image>> {
  const response = await loadImages(client, region)
  const notes = response.unavailable.map(
    ({ region: name, message }) => `${name} cannot be listed: ${sanitize(message)}`,
  )
  return {
    rows: response.images,
    toJson: (images) => ({ ...response, images }),
    note: notes.length === 0 ? null : notes.join('\n'),
  }
}
