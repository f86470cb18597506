// Exchange between two ranks in Java by Intel MPI's own binding, direct buffers. See README.md.
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.DoubleBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import mpi.Collective;
import mpi.Comm;
import mpi.Datatype;
import mpi.MPI;
import mpi.Op;
import mpi.PTP;

class Exchange {
    static final String[] NAMES = {"pingpong", "bcast", "allreduce", "alltoall", "barrier"};
    static final int PAGE = 4096, COMPILED = 10, RANKS = 2;
    static final int PINGPONG = 0, BCAST = 1, ALLREDUCE = 2, ALLTOALL = 3, BARRIER = 4;
    static int rank, batches;
    static ByteBuffer out, in;

    static ByteBuffer allocatePages(int bytes) {
        int pages = (bytes + PAGE - 1) / PAGE + 1; // the slice loses what is before its first page
        return ByteBuffer.allocateDirect(pages * PAGE).alignedSlice(PAGE).order(ByteOrder.nativeOrder());
    }

    static double value(int from, int batch, int i) {
        return 1 + (31 * from + 7 * batch + i) % 251;
    }

    static void fill(int routine, int batch, int count) {
        DoubleBuffer sent = out.asDoubleBuffer(), received = in.asDoubleBuffer();
        for (int i = 0; i < count; i++) {
            sent.put(i, value(rank, batch, i));
            received.put(i, routine == BCAST && rank == 0 ? value(rank, batch, i) : 0);
        }
    }

    static double countWrong(int routine, int batch, int count) {
        DoubleBuffer received = in.asDoubleBuffer();
        double wrong = 0;
        for (int i = 0; i < count; i++) {
            double first = value(0, batch, i), second = value(1, batch, i);
            double expected = routine == BCAST || rank == 1 ? first : second;
            if (routine == ALLREDUCE) expected = first + second;
            if (routine == ALLTOALL) {
                int half = count / RANKS;
                expected = value(i / half, batch, rank * half + i % half);
            }
            wrong += received.get(i) == expected ? 0 : 1;
        }
        return wrong;
    }

    static void call(int routine, int count) throws Exception {
        if (routine == BCAST) {
            Collective.bcast(in, count, Datatype.DOUBLE, 0, Comm.WORLD);
        } else if (routine == ALLREDUCE) {
            Collective.allReduce(out, in, count, Datatype.DOUBLE, Op.MPI_SUM, Comm.WORLD);
        } else if (routine == ALLTOALL) {
            Collective.allToAll(out, count / RANKS, Datatype.DOUBLE, in, count / RANKS, Datatype.DOUBLE, Comm.WORLD);
        } else if (routine == BARRIER) {
            Collective.barrier(Comm.WORLD);
        } else if (rank == 0) {
            PTP.send(out, count, Datatype.DOUBLE, 1, 0, Comm.WORLD);
            PTP.recv(in, count, Datatype.DOUBLE, 1, 0, Comm.WORLD);
        } else {
            PTP.recv(in, count, Datatype.DOUBLE, 0, 0, Comm.WORLD);
            PTP.send(out, count, Datatype.DOUBLE, 0, 0, Comm.WORLD);
        }
    }

    static void measure(int routine, int bytes, int calls) throws Exception {
        int count = bytes / Double.BYTES * (routine == ALLTOALL ? RANKS : 1);
        double[] mine = new double[1], all = new double[1], seconds = new double[batches];
        double wrong = 0;
        for (int batch = 0; batch < 2 * batches; batch++) {
            fill(routine, batch, count);
            Collective.barrier(Comm.WORLD);
            double begin = MPI.wTime();
            int made = batch < batches ? COMPILED * calls : calls;
            for (int n = 0; n < made; n++) call(routine, count);
            mine[0] = (MPI.wTime() - begin) / calls / (routine == PINGPONG ? 2 : 1);
            Collective.allReduce(mine, all, 1, Datatype.DOUBLE, Op.MPI_MAX, Comm.WORLD);
            seconds[batch % batches] = all[0];
            wrong += countWrong(routine, batch, count);
        }
        mine[0] = wrong;
        Collective.allReduce(mine, all, 1, Datatype.DOUBLE, Op.MPI_SUM, Comm.WORLD);
        StringBuilder line = new StringBuilder(String.format("%s %d %.0f", NAMES[routine], bytes, all[0]));
        for (double each : seconds) line.append(String.format(java.util.Locale.ROOT, " %.6e", each));
        if (rank == 0) System.out.println(line);
    }

    // The binding has no MPI_Get_library_version: the file that is loaded is named instead.
    static String findLibrary() throws Exception {
        for (String line : Files.readAllLines(Path.of("/proc/self/maps")))
            if (line.contains("/libmpi.so")) return line.substring(line.indexOf('/'));
        return "none";
    }

    public static void main(String[] words) throws Exception {
        MPI.Init(words);
        rank = Comm.WORLD.getRank();
        int size = Comm.WORLD.getSize();
        if (rank == 0) System.out.println("world " + size + " 0 " + findLibrary());
        if (size == RANKS) {
            batches = Integer.parseInt(words[0]);
            out = allocatePages(RANKS * Integer.parseInt(words[words.length - 2]));
            in = allocatePages(RANKS * Integer.parseInt(words[words.length - 2]));
            for (int routine = 0; routine < BARRIER; routine++)
                for (int n = 1; n < words.length; n += 2)
                    measure(routine, Integer.parseInt(words[n]), Integer.parseInt(words[n + 1]));
            measure(BARRIER, 0, Integer.parseInt(words[2]));
            if (rank == 0) System.out.println("end");
        }
        MPI.Finalize();
    }
}
