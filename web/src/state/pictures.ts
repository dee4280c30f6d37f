/** A picture that is to be sent. */
export interface Picture {
  mimeType: string;
  /** Its bytes, in base64. */
  data: string;
  name: string;
}

export const KINDS = ["image/png", "image/jpeg", "image/webp", "image/gif"];
const MAX_BYTES = 5 << 20;
/** Larger ones are drawn smaller: the server takes a megabyte with each message. */
const KEPT_AS_IT_IS = 240 << 10;
/** Characters of all pictures of a message. */
export const MAX_DATA = 1_000_000;
const SIDES = [1568, 1200, 900, 640];

/** Reads a picture; what is thrown says why it cannot be sent. */
export async function readPicture(file: File): Promise<Picture> {
  const name = file.name || "Picture";
  if (!KINDS.includes(file.type)) throw new Error(`${name} is no PNG, JPEG, WebP or GIF picture`);
  if (file.size > MAX_BYTES) throw new Error(`${name} is larger than 5 MB`);
  const blob = file.size > KEPT_AS_IT_IS ? await shrink(file, name) : file;
  return { mimeType: blob.type, data: await base64(blob), name };
}

/** Pictures with others added, or why that is too much. */
export function withPictures(had: readonly Picture[], more: readonly Picture[]): Picture[] {
  const all = [...had, ...more];
  if (all.length > 16) throw new Error("At most 16 pictures go with a message");
  if (all.reduce((sum, { data }) => sum + data.length, 0) > MAX_DATA) {
    throw new Error("These pictures are too large for one message: send them one after the other");
  }
  return all;
}

async function shrink(file: File, name: string): Promise<Blob> {
  const bitmap = await createImageBitmap(file).catch(() => null);
  if (!bitmap) throw new Error(`${name} cannot be read`);
  try {
    for (const side of SIDES) {
      const blob = await drawn(bitmap, side);
      if (blob && blob.size <= KEPT_AS_IT_IS) return blob;
    }
  } finally {
    bitmap.close();
  }
  throw new Error(`${name} is too large`);
}

function drawn(bitmap: ImageBitmap, side: number): Promise<Blob | null> {
  const scale = Math.min(1, side / Math.max(bitmap.width, bitmap.height));
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, Math.round(bitmap.width * scale));
  canvas.height = Math.max(1, Math.round(bitmap.height * scale));
  const context = canvas.getContext("2d");
  if (!context) return Promise.resolve(null);
  // A JPEG has no transparency: what was clear would become black.
  context.fillStyle = "#fff";
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => canvas.toBlob(done, "image/jpeg", 0.85));
}

function base64(blob: Blob): Promise<string> {
  return new Promise((done, failed) => {
    const reader = new FileReader();
    reader.onload = () => done(String(reader.result).split(",", 2)[1] ?? "");
    reader.onerror = () => failed(new Error("The picture cannot be read"));
    reader.readAsDataURL(blob);
  });
}
