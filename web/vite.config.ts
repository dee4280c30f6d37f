import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

// A running narrows, for `npm run dev`.
const server = process.env.NARROWS_URL ?? "http://127.0.0.1:7878";

export default defineConfig({
  plugins: [react()],
  build: {
    // Everything but the entry is loaded when it is needed; nothing is inlined, the policy of the
    // server allows no `data:` scripts and no inline styles.
    assetsDir: "page",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: "es2023",
    chunkSizeWarningLimit: 900,
  },
  server: {
    proxy: {
      "/api": { target: server, ws: true, changeOrigin: true, headers: { origin: server } },
    },
  },
  test: { environment: "happy-dom", include: ["tests/**/*.test.{ts,tsx}"], testTimeout: 60_000 },
});
