// The downloads of this tab, as a signal.
import { signal } from '@preact/signals'
import { createImagePulls, type ImagePull, type ImagePulls } from './image-pulls.ts'
import { getClient } from './live.ts'

export const imagePulls = signal<readonly ImagePull[]>([])

let pulls: ImagePulls | null = null
export function getImagePulls(): ImagePulls {
  pulls ??= createImagePulls(getClient().pullImage, (list) => {
    imagePulls.value = list
  })
  return pulls
}
